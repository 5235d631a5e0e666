"""Ranges of S3's objects, read by HTTP straight into buffers that are there already.

Arrow's client takes twice the CPU and more for a byte, and does not tell of which version it is.
AWS's own library finds credentials and signs.
"""

import os
import re
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from io import DEFAULT_BUFFER_SIZE
from threading import Lock
from urllib.parse import SplitResult, urlsplit

from botocore.config import Config
from botocore.exceptions import BotoCoreError
from botocore.session import get_session

from kafka_segments.errors import FileReplacedError

_OK, _PARTIAL, _NO_SUCH_RANGE = 200, 206, 416
_ERRORS = {403: PermissionError, 404: FileNotFoundError}
_PASSING = (429, 500, 502, 503, 504)
_TRIES = 5
_PAUSE_SECONDS = 0.2  # twice as long after each try
_CONNECT_SECONDS = 10
_READ_SECONDS = 60
_SIGNED_SECONDS = 3600
_SIGNED_ANEW_SECONDS = 300  # temporary credentials last longer from here
_MOST_TOLD_BYTES = 64 * 1024
_TOLD = re.compile(r"<(?:Code|Message)>([^<]{1,200})")


class S3Bucket:
    """Reads a bucket's objects; connections are kept, and taken by one thread at a time."""

    def __init__(self, name: str, *, region: str, endpoint: str | None) -> None:
        """Prepare; no request is sent. ``endpoint``: of another server than AWS's own."""
        self.name = name
        style = "path" if endpoint else "auto"
        config = Config(signature_version="s3v4", s3={"addressing_style": style})
        self._client = get_session().create_client(
            "s3", region_name=region, endpoint_url=endpoint, config=config
        )
        self._kept: deque[HTTPConnection] = deque()
        self._tls: ssl.SSLContext | None = None

    def signed_url(self, key: str) -> str:
        """Return the URL of an object for who may read it.

        Raises:
            OSError: there are no credentials.
        """
        try:
            url: str = self._client.generate_presigned_url(
                "get_object", {"Bucket": self.name, "Key": key}, ExpiresIn=_SIGNED_SECONDS
            )
        except BotoCoreError as error:
            raise PermissionError(f"s3://{self.name}/{key}: {error}") from None
        return url

    def connection(self, url: SplitResult) -> HTTPConnection:
        """Return a connection to a URL's server: one that was kept, or a new one.

        Raises:
            OSError: the server does not answer.
        """
        try:
            return self._kept.pop()
        except IndexError:
            pass
        if url.scheme == "https":
            self._tls = self._tls or ssl.create_default_context(
                cafile=os.environ.get("AWS_CA_BUNDLE")
            )
            connection: HTTPConnection = HTTPSConnection(
                url.netloc, timeout=_CONNECT_SECONDS, context=self._tls
            )
        else:
            connection = HTTPConnection(url.netloc, timeout=_CONNECT_SECONDS)
        connection.connect()
        limit = struct.pack("ll", _READ_SECONDS, 0)
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        connection.sock.settimeout(_READ_SECONDS)
        return connection

    def keep(self, connection: HTTPConnection) -> None:
        """Keep a connection whose answer was read to its end, a refusal's as well."""
        self._kept.append(connection)

    def close(self) -> None:
        """Close the connections that are kept."""
        while self._kept:
            self._kept.pop().close()


_MAKING = Lock()


def s3_bucket(name: str, region: str, endpoint: str | None) -> S3Bucket:
    """Return what reads a bucket, one for each in a process, whichever thread asks first."""
    with _MAKING:
        return _made(name, region, endpoint)


@lru_cache(maxsize=64)
def _made(name: str, region: str, endpoint: str | None) -> S3Bucket:
    return S3Bucket(name, region=region, endpoint=endpoint)


class _PassingError(Exception):
    """What may be otherwise when the same is asked again."""


class _Target:
    """Views that are filled one after another, whatever a store gives at once."""

    def __init__(self, views: Iterator[memoryview]) -> None:
        self._views = views
        self._rest = memoryview(bytearray())
        self.is_full = False

    def rest(self) -> memoryview:
        """Return what is left of a view, or the next one; nothing once there are no more."""
        if not self._rest:
            self._rest = next(self._views, self._rest)
            self.is_full = not self._rest
        return self._rest

    def took(self, length: int) -> None:
        """Go on behind what was filled."""
        self._rest = self._rest[length:]


def _reader_of(answer: HTTPResponse, received: socket.socket) -> Callable[[memoryview], int]:
    """Return what fills a view with the next bytes of an answer, none at its end.

    A body of known length that is not encrypted is received by the system alone: one call for all
    of a view, and no look before it whether something came.
    """
    if answer.length is None or isinstance(received, ssl.SSLSocket):
        return answer.readinto
    left, is_begun = answer.length, False

    def read_into(view: memoryview) -> int:
        nonlocal left, is_begun
        view = view[:left]
        if not view:
            return 0
        received.settimeout(None)  # the system has the same limit
        try:
            if is_begun:
                read = received.recv_into(view, len(view), socket.MSG_WAITALL)
            else:  # what came with the headers
                read = answer.fp.readinto1(view) or 0
                is_begun = len(view) > DEFAULT_BUFFER_SIZE  # nothing is left of it
        finally:
            received.settimeout(_READ_SECONDS)
        left -= read
        answer.length = left
        return read

    return read_into


def _whole_size(answer: HTTPResponse, *, is_end: bool) -> int | None:
    """Return the size of the object that an answer is of, None where it does not say.

    ``is_end``: its last bytes were asked for, which only an empty object does not have.
    """
    size = answer.headers.get("Content-Range", "").rpartition("/")[2]
    if size.isdecimal():
        return int(size)
    if is_end and answer.status == _NO_SUCH_RANGE:
        return 0
    return answer.length if is_end and answer.status == _OK else None


class S3Object:
    """An object that is read by ranges, all of the same version.

    ``size_bytes`` is None until it is known: whoever does not know it asks for the end first.
    """

    def __init__(self, bucket: S3Bucket, key: str, size_bytes: int | None) -> None:
        self._bucket = bucket
        self._key = key
        self.size_bytes = size_bytes
        self._version: str | None = None
        self._url = ""
        self._signed = 0.0
        self._lock = Lock()

    def end(self, length: int) -> bytes:
        """Return the last bytes of the object, all of them where it has no more than ``length``.

        Raises:
            FileReplacedError, FileNotFoundError, OSError: see ``fill``.
        """
        data = bytearray(length)
        filled = self._filled(None, length, _Target(iter([memoryview(data)])))
        return bytes(data[:filled])

    def fill(self, position: int, length: int, views: Iterator[memoryview]) -> int:
        """Fill views with a range of the object; return the bytes filled.

        They are fewer than ``length`` if the views end earlier. The first view is taken when the
        store has answered. After a refusal or a broken answer the rest is asked for again.

        Raises:
            FileReplacedError: it is another object than that of the first range, or of its size.
            FileNotFoundError: it is gone.
            OSError: the store did not give the bytes.
        """
        return self._filled(position, length, _Target(views))

    def _filled(self, position: int | None, length: int, target: _Target) -> int:
        """Fill a range; without ``position`` the last bytes of the object."""
        filled, pause, problem = 0, _PAUSE_SECONDS, ""
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(pause)
                pause *= 2
            start = None if position is None else position + filled
            try:
                filled += self._read_once(start, length - filled, target)
            except _PassingError as error:
                problem = str(error)
            else:
                if position is None:
                    length = self._length_at_end(length)
                    position = (self.size_bytes or 0) - length
                if filled == length or target.is_full:
                    return filled
                problem = f"the answer ended after {filled} of {length} bytes"
        raise OSError(f"{self._told(position, length)}: {problem}; tried {_TRIES} times")

    def _length_at_end(self, length: int) -> int:
        """Return how many of the last bytes there are."""
        return length if self.size_bytes is None else min(length, self.size_bytes)

    def _read_once(self, position: int | None, length: int, target: _Target) -> int:
        """Fill what one answer gives, fewer bytes where it is broken off."""
        url = urlsplit(self._signed_url())
        asked = f"-{length}" if position is None else f"{position}-{position + length - 1}"
        wanted = {"Range": f"bytes={asked}"}
        connection = answer = None
        filled, is_whole = 0, False
        try:
            connection = self._bucket.connection(url)
            connection.request("GET", f"{url.path}?{url.query}", headers=wanted)
            received = connection.sock  # an answer that is the last takes it from the connection
            answer = connection.getresponse()
            problem = self._problem(answer, position, length)
            if position is None:
                length = self._length_at_end(length)
            read_into = _reader_of(answer, received)
            while problem is None and filled < length:
                read = read_into(target.rest())
                if not read:
                    break
                target.took(read)
                filled += read
            is_at_end = answer.isclosed() or (answer.length == 0 and not answer.will_close)
            is_whole = is_at_end and (filled == length or problem is not None)
        except (OSError, HTTPException) as error:
            self._bucket.close()  # a server that closed this one may have closed those, too
            problem = None if filled else _PassingError(str(error) or type(error).__name__)
        if answer is not None:
            answer.close()
        if connection is not None:
            self._bucket.keep(connection) if is_whole else connection.close()
        if problem is not None:
            raise problem
        return filled

    def _signed_url(self) -> str:
        with self._lock:
            now = time.monotonic()
            if not self._url or now - self._signed > _SIGNED_ANEW_SECONDS:
                self._url, self._signed = self._bucket.signed_url(self._key), now
            return self._url

    def _problem(self, answer: HTTPResponse, position: int | None, length: int) -> Exception | None:
        """Return what an answer says where it is not the range of the version that is read."""
        found = _whole_size(answer, is_end=position is None)
        with self._lock:
            if self.size_bytes is None:
                self.size_bytes = found
            size_bytes = self.size_bytes
        if size_bytes is not None:
            if found is not None and found != size_bytes:
                return FileReplacedError(found, size_bytes)
            if answer.status == _NO_SUCH_RANGE and not size_bytes:
                return None
            is_all = length == size_bytes or (position is None and length > size_bytes)
            if answer.status == _PARTIAL or (answer.status == _OK and is_all):
                version = answer.headers.get("ETag")
                with self._lock:
                    self._version = self._version or version
                    is_same = version == self._version
                return None if is_same else FileReplacedError(size_bytes, size_bytes)
        text = ": ".join(_TOLD.findall(answer.read(_MOST_TOLD_BYTES).decode("utf-8", "replace")))
        said = f"{answer.status} {text or answer.reason or 'refused'}"
        if answer.status in _PASSING:
            return _PassingError(said)
        kind = _ERRORS.get(answer.status, OSError)
        return kind(f"{self._told(position, length)}: {said}")

    def _told(self, position: int | None, length: int) -> str:
        where = f"s3://{self._bucket.name}/{self._key}"
        if position is None:
            return f"{where}, its last {length} bytes"
        return f"{where}, bytes {position} to {position + length - 1}"
