"""An S3 server in this process: real HTTP, every request noted, failures on demand."""

import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from support.stores.s3_files import S3Files

_SLOW_SECONDS = 5
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


class ObjectStore(S3Files):
    """Serves S3 on a socket that listens already."""

    def __init__(self, listening: socket.socket) -> None:
        super().__init__("http://{}:{}".format(*listening.getsockname()))
        self.requests: list[Request] = []
        self.refuses: Callable[[Request], bool] = lambda _: False
        self.cuts_off: Callable[[Request], bool] = lambda _: False
        self.drops: Callable[[Request], bool] = lambda _: False
        self.waits: Callable[[Request], bool] = lambda _: False
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

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

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
        if self.waits(request):
            time.sleep(_SLOW_SECONDS)
        if self.drops(request):  # the connection is closed without an answer
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionResetError
        answer: Iterable[bytes] = self._app(environ, start)
        if self.cuts_off(request):  # the length in the header is that of the whole
            whole = b"".join(answer)
            return [whole[: len(whole) // 2]]
        return answer
