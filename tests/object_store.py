"""An S3 server in this process: real HTTP, every request noted, failures on demand."""

import socket
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from pyarrow import fs
from werkzeug.serving import WSGIRequestHandler, make_server

ACCESS_KEY, SECRET_KEY = "AKIATESTACCESSKEY", "a-secret/that+nobody=sees"
_PATIENCE_SECONDS = 120
_SLOW_DOWN = (
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate</Message></Error>"
)


class Request(NamedTuple):
    """A request as the server saw it; ``ranged`` is the header Range."""

    method: str
    path: str
    query: str
    ranged: str | None


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        pass


class ObjectStore:
    """Serves S3 on a socket that listens already."""

    def __init__(self, listening: socket.socket) -> None:
        self.endpoint = "http://{}:{}".format(*listening.getsockname())
        self.requests: list[Request] = []
        self.refuses: Callable[[Request], bool] = lambda _: False
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1",
            0,
            self._answer,
            threaded=True,
            request_handler=_Quiet,
            fd=listening.fileno(),
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.files = fs.S3FileSystem(
            access_key=ACCESS_KEY,
            secret_key=SECRET_KEY,
            region="us-east-1",
            endpoint_override=self.endpoint,
            allow_bucket_creation=True,
            connect_timeout=_PATIENCE_SECONDS,
            request_timeout=_PATIENCE_SECONDS,  # moto imports S3 at the first; 3 are pyarrow's own
        )

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def put_folder(self, folder: Path, key: str) -> None:
        """Upload a folder's files, each under its path below ``key`` (bucket and prefix)."""
        self.files.create_dir(key.partition("/")[0])
        for file in folder.rglob("*"):
            if file.is_file():
                self.put(f"{key}/{file.relative_to(folder)}", file.read_bytes())

    def put(self, key: str, data: bytes) -> None:
        with self.files.open_output_stream(key) as stream:
            stream.write(data)

    def objects(self, key: str) -> dict[str, bytes]:
        """Give what lies below a bucket and prefix, by the rest of its name."""
        found = self.files.get_file_info(fs.FileSelector(key, recursive=True, allow_not_found=True))
        return {
            info.path.removeprefix(f"{key}/"): self.files.open_input_file(info.path).read()
            for info in found
            if info.is_file
        }

    def read_of(self, key: str) -> list[Request]:
        """Give the GET requests of one object."""
        return [found for found in self.requests if found[:2] == ("GET", f"/{key}")]

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(
            environ["REQUEST_METHOD"],
            environ["PATH_INFO"],
            environ.get("QUERY_STRING", ""),
            environ.get("HTTP_RANGE"),
        )
        self.requests.append(request)
        if self.refuses(request):
            start("503 Slow Down", [("Content-Type", "application/xml")])
            return [_SLOW_DOWN]
        answer: Iterable[bytes] = self._app(environ, start)
        return answer
