"""Make the archive of classes for Java 17 and 18, which do not keep one themselves.

python -m kafka_segments.class_archive [ROOT]: a command that found no archive starts it when it
ends. It runs a few verbs on a log of one record, in a folder thrown away; the JVM writes down what
it loaded when it ends.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kafka_segments.engine.spark.archive import class_archive, is_switched_off, keeps_its_own
from kafka_segments.engine.spark.jars import jars_of
from kafka_segments.engine.spark.session import spark_session
from kafka_segments.engine.workarounds.jvm import end_jvm
from kafka_segments.errors import KafkaSegmentsError
from kafka_segments.files.storage.scratch import scratch_below, scratch_folder

_MOST_SECONDS = 600
_ROOT = Path(__file__).resolve().parents[2]
# A batch v2 of one record, as Kafka writes it.
_LOG = bytes.fromhex(
    "0000000000000000000000390000000002965a94b10000000000000000018bcfe568000000018bcf"
    "e56800ffffffffffffffffffffffffffff000000010e00000001026100"
)


def make_class_archive(root: Path, archive: Path) -> None:
    """Make the archive of an installation; its older ones go."""
    written = archive.with_suffix(f".{os.getpid()}.new")
    try:
        with scratch_below(scratch_folder()) as folder:
            try:
                _load_classes(root, written, folder)
            finally:
                end_jvm()  # it writes the archive as its last act
        for older in archive.parent.glob(f"{archive.name.partition('-')[0]}-*"):
            if older != written:
                older.unlink(missing_ok=True)
        written.replace(archive)
    finally:
        written.unlink(missing_ok=True)


def _load_classes(root: Path, written: Path, folder: Path) -> None:
    with spark_session("class archive", root=root, dump_classes=written) as spark:
        with (
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            _run_verbs(folder)
        table = spark.read.format("delta").load(f"{folder}/warehouse/segments")
        table.groupBy("topic").count().orderBy("topic").collect()


def _run_verbs(folder: Path) -> None:
    from kafka_segments.cli import cli  # noqa: PLC0415

    log = folder / "logs" / "t-0" / f"{0:020d}.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(_LOG)
    source = f"--source {folder}/logs"
    for verb in (
        f"build {source} --index-dir {folder}/indexes",
        f"build {source} --index-dir {folder}/indexes --full",
        *("retention", "search --time now", "roll", f"audit {source}"),
    ):
        with contextlib.suppress(SystemExit):
            cli.main([*verb.split(), "--warehouse", f"{folder}/warehouse"], standalone_mode=False)


def main() -> int:
    """Make the archive where there is none and Java makes none; return status 0 in any case."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else _ROOT
    signal.alarm(_MOST_SECONDS)
    try:
        archive = class_archive(root, jars_of(root))
        if not (is_switched_off() or keeps_its_own() or archive.exists()):
            archive.parent.mkdir(parents=True, exist_ok=True)
            make_class_archive(root, archive)
    except (KafkaSegmentsError, OSError, RuntimeError, Py4JError, PySparkException) as error:
        sys.stderr.write(f"no archive of classes: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
