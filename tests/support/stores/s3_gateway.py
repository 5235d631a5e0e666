"""A real S3 server as a process of its own: it signs, lists and serves a folder of this machine."""

import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from support.kafka.kafka_broker import free_ports
from support.stores.s3_files import ACCESS_KEY, SECRET_KEY, S3Files

PROGRAM = Path(__file__).resolve().parents[3] / "build" / "s3-server" / "versitygw"
_PATIENCE_SECONDS = 30


def skip_without_gateway() -> None:
    """Skip a test where the server was not built, in CI too: Go is no tool of this project."""
    if not PROGRAM.exists():
        pytest.skip("no S3 server was built: `make s3-server` does it with Go 1.25 or later")


class S3Gateway(S3Files):
    """Serves buckets that lie in a folder; use it in a ``with`` statement.

    Attributes:
        environment: The variables by which clients find the server.
        pid: The server's process.
    """

    def __init__(self, folder: Path) -> None:
        buckets, about = folder / "buckets", folder / "about"
        for made in (buckets, about):
            made.mkdir(parents=True)
        (port,) = free_ports(1)
        self._log = folder / "server.log"
        with self._log.open("wb") as log:
            self._server = subprocess.Popen(
                [
                    *(PROGRAM, "--port", f"127.0.0.1:{port}", "--health", "/health", "--quiet"),
                    *("--access", ACCESS_KEY, "--secret", SECRET_KEY),
                    *("posix", "--sidecar", about, buckets),
                ],
                stdout=log,
                stderr=log,
            )
        self.pid = self._server.pid
        endpoint = f"http://127.0.0.1:{port}"
        self._wait_for(f"{endpoint}/health")
        super().__init__(endpoint)
        self.environment = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.terminate()
        self._server.wait()

    def _wait_for(self, url: str) -> None:
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                with urlopen(url):
                    return
            except URLError:
                if self._server.poll() is not None or time.monotonic() > until:
                    self._server.kill()
                    raise RuntimeError(f"no S3 server: {self._log.read_text('utf-8')}") from None
            time.sleep(0.05)
