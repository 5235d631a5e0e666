"""Make the archive of classes by which the JVMs of later commands start sooner.

Run by `make class-archive`: python -m kafka_segments.class_archive ROOT SOURCE. It builds the
segments of SOURCE twice, into a folder thrown away; the JVM writes what it loaded when it ends.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from kafka_segments.build.options import BuildOptions
from kafka_segments.build.run import Build
from kafka_segments.index.recovery import RecoveryOptions
from kafka_segments.spark.session import class_archive, spark_session

_SECONDS = 300


def make_class_archive(root: Path, source: Path) -> bool:
    """Make the archive of a checkout; tells whether there is one."""
    archive = class_archive(root)
    archive.unlink(missing_ok=True)
    written = archive.with_suffix(".new")
    now_ms = time.time_ns() // 1_000_000
    with (
        tempfile.TemporaryDirectory() as folder,
        spark_session("class archive", root=root, dump_classes=written) as spark,
    ):
        options = BuildOptions(
            (str(source),),
            f"{folder}/warehouse",
            RecoveryOptions(),
            now_ms,
            index_dir=f"{folder}/indexes",
            full=True,
        )
        for _ in range(2):
            Build(spark, options).run()
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_SECONDS)
    if written.exists():
        written.replace(archive)
    return archive.exists()


if __name__ == "__main__":
    sys.exit(0 if make_class_archive(*map(Path, sys.argv[1:])) else "the JVM wrote no archive")
