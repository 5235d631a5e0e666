"""Hadoop's own HDFS in one JVM: a name node with its HTTP server, and a data node."""

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

REPOSITORY = Path(__file__).resolve().parents[3]
_SOURCE = REPOSITORY / "tests" / "hadoop" / "MiniHdfs.java"
_JARS = (REPOSITORY / "jars" / "hdfs", Path(pyspark.__file__).with_name("jars"))


class MiniHdfs:
    """Serves HDFS on free ports; use it in a ``with`` statement."""

    def __init__(self, folder: Path) -> None:
        class_path = ":".join(f"{jars}/*" for jars in _JARS)
        self._server = subprocess.Popen(
            ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", class_path, _SOURCE, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        assert self._server.stdout is not None
        port, _, web = self._server.stdout.readline().partition(" ")
        if not web:
            self._server.communicate()
            raise RuntimeError(f"HDFS did not start: see above; are its JARs in {_JARS[0]}?")
        self.uri, self.web_uri = (
            f"hdfs://localhost:{port}",
            "webhdfs" + web.strip().removeprefix("http"),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.communicate()
