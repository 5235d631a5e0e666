"""A small S3 server for measuring: lists and serves a folder's files, each answer after a pause.

``python s3_server.py FOLDER PAUSE_MS BYTES_A_SECOND`` serves FOLDER's folders as buckets and prints
its port. So many bytes a second of objects leave it, 0 as many as can. Its listings are made once;
``/?count`` answers with the requests since it was last asked, by kind.
"""

import json
import os
import sys
import threading
import time
from bisect import bisect_left
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_MOST_KEYS = 1000
_PIECE_BYTES = 256 * 1024
_TIME = "2026-01-01T00:00:00.000Z"


class Link:
    """Lets pieces of all answers leave one after another, as a network of some rate does."""

    def __init__(self, bytes_a_second: float) -> None:
        self.is_slow = bytes_a_second > 0
        self._bytes_a_second = bytes_a_second
        self._free_at = 0.0
        self._lock = threading.Lock()

    def wait(self, length: int) -> None:
        """Wait until so many bytes may leave."""
        if not self.is_slow:
            return
        with self._lock:
            starts = max(self._free_at, time.monotonic())
            self._free_at = starts + length / self._bytes_a_second
        time.sleep(max(0, starts - time.monotonic()))


class Handler(BaseHTTPRequestHandler):
    """Answers ListObjectsV2, HEAD and GET with a range."""

    protocol_version = "HTTP/1.1"
    folder: Path
    pause_seconds: float
    link: Link
    keys: dict[str, list[tuple[str, int]]]
    counts: ClassVar[Counter[str]] = Counter()
    under_way: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Answer for a bucket or an object."""
        self._paused("HEAD")
        file = self.folder / unquote(urlsplit(self.path).path).lstrip("/")
        if not file.exists():
            self._answer(404, b"")
            return
        self._object(200, file, 0, file.stat().st_size if file.is_file() else 0, send=False)

    def do_GET(self) -> None:
        """Answer a listing or a read."""
        url = urlsplit(self.path)
        query = parse_qs(url.query, keep_blank_values=True)
        if "count" in query:
            with self.lock:
                told = json.dumps({**self.counts, "at once": self.under_way["most"]}).encode()
                self.counts.clear()
                self.under_way.clear()
            self._answer(200, told)
            return
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        if not key:
            self._paused("LIST")
            self._answer(200, self._listing(bucket, {name: one[0] for name, one in query.items()}))
            return
        self._paused("GET")
        file = self.folder / bucket / key
        if not file.exists():
            self._answer(404, b"")
            return
        size_bytes = file.stat().st_size
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        if not first:  # the last bytes
            first, last = str(max(0, size_bytes - int(last))), ""
        end = min(int(last or sys.maxsize) + 1, size_bytes)
        self._object(206, file, int(first), end, send=True)

    def _paused(self, kind: str) -> None:
        with self.lock:
            self.counts[kind] += 1
            self.under_way["now"] += 1
            self.under_way["most"] = max(self.under_way["most"], self.under_way["now"])
        time.sleep(self.pause_seconds)
        with self.lock:
            self.under_way["now"] -= 1

    def _listing(self, bucket: str, query: dict[str, str]) -> bytes:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        most = int(query.get("max-keys", _MOST_KEYS))
        keys = self.keys.get(bucket, [])
        index = bisect_left(keys, (max(prefix, query.get("continuation-token", "")), -1))
        files, folders, token = [], [], ""
        while index < len(keys) and keys[index][0].startswith(prefix):
            key, size = keys[index]
            if len(files) + len(folders) == most:
                token = key
                break
            at = key.find(delimiter, len(prefix)) if delimiter else -1
            if at >= 0:
                folders.append(key[: at + 1])
                index = bisect_left(keys, (key[:at] + chr(ord("/") + 1), -1))
            else:
                files.append((key, size))
                index += 1
        is_cut = f"<NextContinuationToken>{escape(token)}</NextContinuationToken>" if token else ""
        body = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{_TIME}</LastModified>"
            f'<ETag>"1"</ETag><Size>{size}</Size></Contents>'
            for key, size in files
        ) + "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in folders
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>'
            f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<KeyCount>{len(files) + len(folders)}</KeyCount>"
            f"<IsTruncated>{str(bool(token)).lower()}</IsTruncated>{is_cut}{body}</ListBucketResult>"
        ).encode()

    def _object(self, status: int, file: Path, start: int, end: int, *, send: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(end - start))
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{file.stat().st_size}")
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.wfile.flush()
        if send:
            with file.open("rb") as data:
                while start < end:
                    length = min(_PIECE_BYTES, end - start) if self.link.is_slow else end - start
                    self.link.wait(length)
                    start += os.sendfile(self.connection.fileno(), data.fileno(), start, length)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/xml")
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """Lets many clients connect at the same moment; Python's own five wait for a second else."""

    daemon_threads = True
    request_queue_size = 256


def main() -> None:
    """Serve until killed."""
    Handler.folder, Handler.pause_seconds = Path(sys.argv[1]), float(sys.argv[2]) / 1000
    Handler.keys = {
        bucket.name: sorted(
            (str(Path(folder, name).relative_to(bucket)), size(folder, name))
            for folder, _, names in os.walk(bucket)
            for name in names
        )
        for bucket in Handler.folder.iterdir()
    }
    Handler.link = Link(float(sys.argv[3]))
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


def size(folder: str, name: str) -> int:
    """Give a file's size in bytes."""
    return Path(folder, name).stat().st_size


if __name__ == "__main__":
    main()
