"""The daemon of Python workers: where it finds PySpark, and where the JVM hangs up on a worker."""

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.spark.worker_daemon import quiet, without_archive

_ARCHIVE = "/env/site-packages/pyspark/python/lib/pyspark.zip"


@pytest.mark.parametrize("hung_up", [BrokenPipeError, ConnectionResetError])
def test_a_worker_that_the_jvm_hung_up_on_ends_without_a_fault(hung_up: type[OSError]) -> None:
    def write_last_bytes(sock: socket.socket, authenticated: bool) -> int:
        raise hung_up

    ours, jvms = socket.socketpair()

    with ours, jvms:
        assert quiet(write_last_bytes)(ours, True) != 0


def test_pyspark_is_imported_from_its_package_where_its_archive_lies_in_that() -> None:
    paths = [_ARCHIVE, "/of/a/user", "/env/site-packages"]

    assert without_archive(paths) == ["/of/a/user", "/env/site-packages"]


@pytest.mark.parametrize("archive", [_ARCHIVE, "/opt/spark/python/lib/pyspark.zip"])
def test_pyspark_is_imported_from_an_archive_whose_package_is_not_found(archive: str) -> None:
    paths = [archive, "/another/site-packages", "/another/site-packages"]

    assert without_archive(paths) == paths


def test_workers_have_what_each_needs_before_they_are_forked(spark: SparkSession) -> None:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            found = [sys.modules["pyspark"].__file__ or "", str("numba" in sys.modules)]
            yield pa.RecordBatch.from_pydict({"found": found})

    rows = spark.range(1).mapInArrow(look, "found string").collect()

    assert Path(rows[0]["found"]) == Path(pyspark.__file__)
    assert rows[1]["found"] == "True"
