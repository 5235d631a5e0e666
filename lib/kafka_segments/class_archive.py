"""Make the archive of classes by which the JVMs of later commands start sooner.

python -m kafka_segments.class_archive [ROOT] [--later]: `make setup` runs it, and a command that
found no archive starts it when it ends. It runs a few verbs on a log of one record, in a folder
thrown away; the JVM writes down what it loaded when it ends.
"""

import argparse
import contextlib
import fcntl
import io
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_segments.engine.spark.archive import (
    class_archive,
    is_switched_off,
    make_archive_later,
    put_in_place,
    usable_archive,
)
from kafka_segments.engine.spark.jars import jars_of
from kafka_segments.engine.spark.session import spark_session
from kafka_segments.engine.tables.catalog import SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import KafkaSegmentsError

_MOST_SECONDS = 600
_END_SECONDS = 120
_ROOT = Path(__file__).resolve().parents[2]
# A batch v2 of one record, as Kafka writes it.
_LOG = bytes.fromhex(
    "0000000000000000000000390000000002965a94b10000000000000000018bcfe568000000018bcf"
    "e56800ffffffffffffffffffffffffffff000000010e00000001026100"
)


def make_class_archive(root: Path) -> bool:
    """Make the archive of an installation that has none; return whether there is one then.

    If another process is making it, do not wait: there is none yet.
    """
    jars = jars_of(root)
    archive = class_archive(root, jars)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with _alone(archive.with_suffix(".lock")) as is_alone:
        if usable_archive(root, jars) or not is_alone:
            return usable_archive(root, jars) is not None
        written = archive.with_suffix(f".{os.getpid()}.new")
        try:
            _write(root, written)
            if written.exists():
                put_in_place(written, archive)
        finally:
            written.unlink(missing_ok=True)
    return usable_archive(root, jars) is not None


def _write(root: Path, written: Path) -> None:
    from pyspark import SparkContext  # noqa: PLC0415

    gateway: Any = None
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            spark_session("class archive", root=root, dump_classes=written) as spark,
        ):
            gateway = SparkContext._gateway
            _run_verbs(Path(folder))
            _read_as_large(spark, Path(folder))
    finally:
        gateway = gateway or SparkContext._gateway
        if gateway is not None:
            _end(gateway)


def _end(gateway: Any) -> None:
    """End the JVM and wait for it: it writes the archive as its last act."""
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_END_SECONDS)
    finally:
        if gateway.proc.poll() is None:
            gateway.proc.kill()


def _run_verbs(folder: Path) -> None:
    """Run what most commands have in common, in the session that is open."""
    from kafka_segments.cli import cli  # noqa: PLC0415

    log = folder / "logs" / "t-0" / f"{0:020d}.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(_LOG)
    warehouse = ["--warehouse", str(folder / "warehouse")]
    source = ["--source", str(folder / "logs")]
    build = ["build", *source, "--index-dir", str(folder / "indexes")]
    for verb in (
        build,
        [*build, "--full"],
        ["sql", "SELECT topic, count(*) FROM segments GROUP BY topic"],
        ["retention"],
        ["search", "--time", "now"],
        ["roll"],
        ["audit", *source],
    ):
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.suppress(SystemExit),
        ):
            cli.main([*verb, *warehouse], standalone_mode=False)


def _read_as_large(spark: SparkSession, folder: Path) -> None:
    """Read a table as one is read that is not small: by Delta, in a query that is compiled."""
    segments = Warehouse(spark, str(folder / "warehouse")).read(SEGMENTS)
    segments.groupBy("topic").count().orderBy("topic").collect()


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[bool]:
    """Hold a lock file while the archive is made; yield whether nobody else does."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            lock.unlink(missing_ok=True)


def main() -> int:
    """Make the archive, and say where it is; in the background nothing is said."""
    parser = argparse.ArgumentParser(prog="python -m kafka_segments.class_archive")
    parser.add_argument("root", nargs="?", type=Path, default=_ROOT)
    parser.add_argument("--later", action="store_true", help="start it and return at once")
    parser.add_argument("--in-background", action="store_true", help="let everything else go first")
    asked = parser.parse_args()
    if is_switched_off():
        return 0
    if asked.later:
        make_archive_later(asked.root, jars_of(asked.root))
        return 0
    if asked.in_background:
        os.nice(19)
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(_MOST_SECONDS)
    try:
        is_there = make_class_archive(asked.root)
    except (KafkaSegmentsError, OSError, Py4JError, PySparkException) as error:
        sys.stderr.write(f"no archive of classes: {error}\n")
        return 0
    if not is_there:
        sys.stderr.write("no archive of classes: the JVM wrote none\n")
    return 0


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"not done in {_MOST_SECONDS} s")


if __name__ == "__main__":
    sys.exit(main())
