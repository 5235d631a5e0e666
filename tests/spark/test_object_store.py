"""Sources, index output and warehouse on S3, by a real server."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.index.recovery import RecoveryOptions
from kafka_segments.pipelines.build import Build, BuildSummary
from kafka_segments.pipelines.build_options import BuildOptions
from kafka_segments.spark import tables
from kafka_segments.spark.tables import Warehouse
from object_store import ACCESS_KEY, SECRET_KEY, ObjectStore

NOW_MS = 1_800_000_000_000
PARTITIONS = ("ct-two-partitions-0", "ct-two-partitions-1")
OF_THE_COPY = {"path", "log_dir", "last_modified_ms", "fingerprint", "run_id", "scanned_at"}
Run = Callable[..., BuildSummary]


@pytest.fixture
def store(object_store: ObjectStore) -> Iterator[ObjectStore]:
    yield object_store
    object_store.refuses = lambda _: False


@pytest.fixture
def build(spark: SparkSession) -> Run:
    def run(source: str, warehouse: str, **options: Any) -> BuildSummary:
        given = BuildOptions(
            (source,), warehouse, recovery=RecoveryOptions(), now_ms=NOW_MS, **options
        )
        return Build(spark, given).run()

    return run


@pytest.fixture
def rows(spark: SparkSession) -> Callable[..., list[dict[str, Any]]]:
    def read(warehouse: str, table: tables.Table, *, without: set[str]) -> list[dict[str, Any]]:
        frame = Warehouse(spark, warehouse).read(table).drop(*without)
        found = [row.asDict(recursive=True) for row in frame.collect()]
        return sorted(found, key=str)

    return read


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_a_build_of_a_copy_on_s3_equals_that_of_the_disk(
    store: ObjectStore,
    build: Run,
    rows: Callable[..., list[dict[str, Any]]],
    log_dir: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bucket, local = "spark-build", str(tmp_path / "tables")
    store.put_folder(log_dir, f"{bucket}/logs")
    remote = f"s3a://{bucket}/tables"
    source, indexes = f"s3://{bucket}/logs", f"s3://{bucket}/indexes"
    caplog.set_level(logging.INFO)

    build(str(log_dir), local, index_dir=str(tmp_path / "indexes"))
    first = build(source, remote, index_dir=indexes)
    reads_before = len(store.requests)
    second = build(source, remote, index_dir=indexes)

    assert store.objects(f"{bucket}/indexes") == _files(tmp_path / "indexes")
    for table in tables.BUILD_TABLES:
        if table is not tables.RUNS:
            here = rows(local, table, without=OF_THE_COPY)
            assert rows(remote, table, without=OF_THE_COPY) == here
    assert (first.segments_scanned, second.segments_scanned) == (4, 0)
    logs_read = [
        found.path
        for found in store.requests[reads_before:]
        if found.method == "GET" and found.path.endswith(".log")
    ]
    assert logs_read == []
    assert store.objects(f"{bucket}/tables/_entries") == {}
    told = caplog.text + str([rows(remote, table, without=set()) for table in tables.BUILD_TABLES])
    assert source in told
    assert ACCESS_KEY not in told
    assert SECRET_KEY not in told


def test_an_object_that_the_store_refuses_is_a_row_and_the_next_run_reads_it(
    store: ObjectStore,
    build: Run,
    rows: Callable[..., list[dict[str, Any]]],
    log_dir: Path,
    tmp_path: Path,
) -> None:
    store.put_folder(log_dir, "spark-refused/logs")
    source, indexes = "s3://spark-refused/logs", "s3://spark-refused/indexes"
    warehouse = str(tmp_path / "tables")
    store.refuses = lambda request: (
        request.ranged is not None and request.path.endswith(f"{PARTITIONS[0]}/{'0' * 20}.log")
    )

    first = build(source, warehouse, index_dir=indexes)
    segments = rows(warehouse, tables.SEGMENTS, without=set())
    (damage,) = (row["damage"] for row in segments if row["damage"] is not None)
    store.refuses = lambda _: False
    second = build(source, warehouse, index_dir=indexes)

    assert (first.segments_scanned, first.segments_damaged) == (4, 1)
    assert damage["kind"] == "unreadable"
    assert "AWS Error" in damage["message"]
    assert (second.segments_scanned, second.segments_damaged) == (1, 0)
    assert {key.split("/")[0] for key in store.objects("spark-refused/indexes")} == set(PARTITIONS)
