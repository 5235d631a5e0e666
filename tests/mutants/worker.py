"""A copy of the checkout, in which one mutant at a time is tried."""

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mutants.operators import Mutant

_SHARED = (".venv", ".venv-airflow", "jars")
_CACHE = "numba"
_ARGUMENTS = ["-x", "-q", "--no-header", "-p", "no:cacheprovider"]
_ARGUMENTS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # imported before the fork
_NO_SPARK = "not spark"
_MEMORY_BYTES = 8 * 2**30
_FEW_SECONDS = 90
_IDLE = 10
_TAIL = 1500


class Worker:
    """Runs tests in a copy of its own; Spark's JVM is started once and lent to every run."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "lib" / "kafka_segments"
        self._cache = folder / _CACHE
        self._output = folder.with_name(f"{folder.name}.txt")
        self._jvm: Any = None
        self._nursery: subprocess.Popen[str] | None = None
        _copy(root, folder)
        self._cache.mkdir(exist_ok=True)

    def close(self) -> None:
        """End what was started."""
        if self._nursery is not None:
            self._nursery.communicate()
        if self._jvm is not None:
            self._jvm.shutdown()
            self._jvm.proc.stdin.close()

    def run(self, tests: list[str], *, seconds: float, **environment: str) -> tuple[int, str]:
        """Run tests until one fails; give pytest's status, or the signal's that ended it.

        ``seconds``: how much of the CPU it may take; a busy machine alone ends no test.
        """
        needs_spark = self._is_for_spark(tests)
        if self._nursery is None:
            self._nursery = self._started()
        lent = self._lent() if needs_spark else {}
        request = {
            "arguments": [*_ARGUMENTS, *tests],
            "environment": {"NUMBA_CACHE_DIR": str(self._cache), **lent, **environment},
            "limits": [[resource.RLIMIT_DATA, _MEMORY_BYTES], [resource.RLIMIT_CPU, int(seconds)]],
            "idle_seconds": _IDLE * seconds,
            "output": str(self._output),
        }
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.write(json.dumps(request) + "\n")
        self._nursery.stdin.flush()
        status = json.loads(self._nursery.stdout.readline())
        output = self._output.read_text(errors="replace")
        if needs_spark:
            self._take_back()
        return status, output[-_TAIL:]

    def _started(self) -> subprocess.Popen[str]:
        variables = os.environ | {
            "PYTHONPATH": os.pathsep.join(str(self.folder / name) for name in ("lib", "tests", "")),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return subprocess.Popen(
            [sys.executable, "-m", "mutants.nursery"],
            cwd=self.folder,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def kills(self, mutant: Mutant, tests: list[str], stale: set[str], *, seconds: float) -> str:
        """Give how a mutant ended: killed, timeout or survived. ``stale``: compiled with it."""
        path = self.package / mutant.path
        source, times = path.read_bytes(), path.stat()
        path.write_bytes(mutant.applied(source))
        try:
            with self._cache_without(stale) as cache:
                limit = _FEW_SECONDS + 4 * seconds
                status, output = self.run(tests, seconds=limit, NUMBA_CACHE_DIR=str(cache))
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if status in (-signal.SIGALRM, -signal.SIGXCPU, -signal.SIGKILL):
            return "timeout"
        if status > 2 and self.run(["--collect-only", *tests], seconds=limit)[0]:
            raise RuntimeError(f"{mutant}: its tests cannot be run without it either: {output}")
        return "killed" if status else "survived"

    @contextlib.contextmanager
    def _cache_without(self, stale: set[str]) -> Iterator[Path]:
        """Give a copy of numba's cache, which knows a function's own file only."""
        if not stale:
            yield self._cache
            return
        copy = self.folder / "numba-of-mutant"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._cache, copy, copy_function=os.link)
        stems = {Path(path).stem for path in stale}
        for file in copy.rglob("*.nb[ic]"):
            if file.name.partition(".")[0] in stems:
                file.unlink()
        yield copy
        shutil.rmtree(copy)

    def _is_for_spark(self, arguments: list[str]) -> bool:
        files = {argument.partition("::")[0] for argument in arguments}
        texts = [(self.folder / file).read_text() for file in files if file.endswith(".py")]
        return _NO_SPARK not in " ".join(arguments) and any("SparkSession" in one for one in texts)

    def _lent(self) -> dict[str, str]:
        """Start Spark's JVM with the settings of the commands' sessions, once."""
        if self._jvm is None:
            from pyspark import SparkConf
            from pyspark.java_gateway import launch_gateway

            from kafka_segments.engine.spark import session
            from kafka_segments.engine.spark.jars import DELTA, find_jars

            jars = ",".join(map(str, find_jars(DELTA, self.folder)))
            settings = (
                session._ALWAYS
                | session._LOCAL
                | {
                    "spark.jars": jars,
                    "spark.master": "local[2]",
                    "spark.sql.shuffle.partitions": "2",
                    session._JAVA_OPTIONS: session._java_options(None, None, is_long=True),
                }
            )
            self._jvm = launch_gateway(SparkConf(loadDefaults=False).setAll(settings.items()))
        parameters = self._jvm.gateway_parameters
        return {
            "PYSPARK_GATEWAY_PORT": str(parameters.port),
            "PYSPARK_GATEWAY_SECRET": parameters.auth_token,
            "PYSPARK_PYTHON": sys.executable,
        }

    def _take_back(self) -> None:
        """Stop a session that a run has left."""
        sessions = self._jvm.jvm.org.apache.spark.sql.classic.SparkSession
        left = sessions.getDefaultSession()
        if left.isDefined():
            left.get().stop()


def _copy(root: Path, folder: Path) -> None:
    """Copy what is under version control; what numba has compiled of the same package stays."""
    compiled = folder.with_name(f"{folder.name}-numba")
    shutil.rmtree(compiled, ignore_errors=True)
    if (folder / _CACHE).exists() and _sources(folder) == _sources(root):
        (folder / _CACHE).rename(compiled)
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if not os.path.lexists(root / name) or name in _SHARED:
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, folder / name, follow_symlinks=False)
    for name in _SHARED:
        if (root / name).exists():
            (folder / name).symlink_to((root / name).resolve())
    if compiled.exists():
        compiled.rename(folder / _CACHE)


def _sources(folder: Path) -> dict[str, bytes]:
    files = sorted((folder / "lib").rglob("*.py"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
