"""Sources, index output and warehouse on S3 and on HDFS, by real servers."""

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.console.options import ExitStatus
from kafka_segments.engine.tables import catalog as tables
from kafka_segments.files.delta.notes import noted_log
from kafka_segments.files.storage.files import list_folder, place
from kafka_segments.files.storage.publishing import publish
from support.spark.ready_builds import LentBuild
from support.spark.stored_builds import OF_THE_COPY, build, files, files_at, rows
from support.stores.mini_hdfs import MiniHdfs
from support.stores.object_store import ObjectStore, Request
from support.stores.s3_files import ACCESS_KEY, SECRET_KEY

PARTITIONS = ("ct-two-partitions-0", "ct-two-partitions-1")


class OnDisk(NamedTuple):
    """Segments on a disk, and a build of them."""

    logs: Path
    indexes: Path
    tables: str


@pytest.fixture(scope="module")
def on_disk(lent_build: LentBuild, tmp_path_factory: pytest.TempPathFactory) -> OnDisk:
    lent = lent_build.lend(tmp_path_factory.mktemp("disk") / "tables")
    return OnDisk(lent.logs, lent.indexes, str(lent.warehouse))


@pytest.fixture
def store(object_store: ObjectStore) -> Iterator[ObjectStore]:
    yield object_store
    object_store.refuses = object_store.cuts_off = lambda _: False


def test_a_build_of_a_copy_on_s3_equals_that_of_the_disk(
    store: ObjectStore,
    spark: SparkSession,
    on_disk: OnDisk,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bucket = "spark-build"
    store.put_folder(on_disk.logs, f"{bucket}/logs")
    remote = f"s3a://{bucket}/tables"
    source, indexes = f"s3://{bucket}/logs", f"s3://{bucket}/indexes"
    caplog.set_level(logging.INFO)

    first = build(spark, source, remote, index_dir=indexes)
    reads_before = len(store.requests)
    second = build(spark, source, remote, index_dir=indexes)

    assert store.objects(f"{bucket}/indexes") == files(on_disk.indexes)
    for table in tables.BUILD_TABLES:
        if table is not tables.RUNS:
            here = rows(spark, on_disk.tables, table, without=OF_THE_COPY)
            assert rows(spark, remote, table, without=OF_THE_COPY) == here
    assert (first.segments_scanned, second.segments_scanned) == (4, 0)
    logs_read = [
        found.path
        for found in store.requests[reads_before:]
        if found.method == "GET" and found.path.endswith(".log")
    ]
    assert logs_read == []
    assert store.objects(f"{bucket}/tables/_entries") == {}
    noted = {table.name: noted_log(f"{remote}/{table.name}") for table in tables.BUILD_TABLES}
    assert all(noted.values())
    told = caplog.text + str(
        [rows(spark, remote, table, without=set()) for table in tables.BUILD_TABLES]
    )
    assert source in told
    assert ACCESS_KEY not in told
    assert SECRET_KEY not in told


@pytest.mark.long
def test_a_build_of_a_copy_on_hdfs_equals_that_of_the_disk(
    hdfs: MiniHdfs, spark: SparkSession, on_disk: OnDisk
) -> None:
    root = f"{hdfs.web_uri}/build"
    for name, data in files(on_disk.logs).items():
        publish(place(root).child("logs", name), data)

    build(spark, f"{root}/logs", f"{root}/tables", index_dir=f"{root}/indexes")

    assert files_at(place(f"{root}/indexes")) == files(on_disk.indexes)
    for table in tables.BUILD_TABLES:
        if table is not tables.RUNS:
            here = rows(spark, on_disk.tables, table, without=OF_THE_COPY)
            assert rows(spark, f"{root}/tables", table, without=OF_THE_COPY) == here
    assert list_folder(place(f"{root}/tables/_entries")) == []
    assert noted_log(f"{root}/tables/segments") is not None
    at_hadoops_own = spark.read.format("delta").load(f"{hdfs.uri}/build/tables/segments")
    assert at_hadoops_own.count() == 4


def test_a_store_that_throttles_every_read_gives_what_the_disk_gives(
    store: ObjectStore, spark: SparkSession, on_disk: OnDisk, tmp_path: Path
) -> None:
    store.put_folder(on_disk.logs, "spark-throttled/logs")
    tries: Counter[Request] = Counter()

    def is_throttled(request: Request) -> bool:
        tries[request] += 1
        return request.method == "GET" and tries[request] <= 2

    store.refuses = is_throttled
    warehouse, indexes = str(tmp_path / "wh"), tmp_path / "indexes"
    summary = build(spark, "s3://spark-throttled/logs", warehouse, index_dir=str(indexes))

    assert (summary.segments_scanned, summary.findings) == (4, 0)
    assert max(tries.values()) >= 3
    assert files(indexes) == files(on_disk.indexes)
    here = rows(spark, on_disk.tables, tables.SEGMENTS, without=OF_THE_COPY)
    assert rows(spark, warehouse, tables.SEGMENTS, without=OF_THE_COPY) == here


@pytest.mark.long
def test_an_object_that_the_store_refuses_is_a_row_and_the_next_run_reads_it(
    store: ObjectStore,
    spark: SparkSession,
    log_dir: Path,
    tmp_path: Path,
) -> None:
    store.put_folder(log_dir, "spark-refused/logs")
    source, indexes = "s3://spark-refused/logs", "s3://spark-refused/indexes"
    warehouse = str(tmp_path / "tables")
    store.refuses = lambda request: (
        request.ranged is not None and request.path.endswith(f"{PARTITIONS[0]}/{'0' * 20}.log")
    )

    first = build(spark, source, warehouse, index_dir=indexes)
    segments = rows(spark, warehouse, tables.SEGMENTS, without=set())
    (damage,) = (row["damage"] for row in segments if row["damage"] is not None)
    store.refuses = lambda _: False
    second = build(spark, source, warehouse, index_dir=indexes)

    assert (first.segments_scanned, first.segments_damaged) == (4, 1)
    assert damage["kind"] == "unreadable"
    log = f"{source}/{PARTITIONS[0]}/{'0' * 20}.log"
    assert damage["message"].startswith(f"{log}, bytes 0 to ")
    assert damage["message"].endswith(
        ": 503 SlowDown: Please reduce your request rate; tried 5 times"
    )
    assert (second.segments_scanned, second.segments_damaged) == (1, 0)
    assert {key.split("/")[0] for key in store.objects("spark-refused/indexes")} == set(PARTITIONS)


def test_a_table_whose_answers_break_off_fails_soon_and_names_the_object(
    store: ObjectStore, spark: SparkSession, on_disk: OnDisk
) -> None:
    store.put_folder(Path(on_disk.tables), "spark-cut/tables")
    store.cuts_off = lambda request: (
        request.method == "GET" and "/segments/" in request.path and ".parquet" in request.path
    )

    before = len(store.requests)
    question = ["--warehouse", "s3a://spark-cut/tables", "select * from segments"]
    done = CliRunner().invoke(cli, ["sql", *question])

    assert done.exit_code == ExitStatus.FAILED, done.output
    assert "s3a://spark-cut/tables/segments/" in done.stderr
    assert "the store's answers broke off or did not come" in done.stderr
    asked = Counter(request.path for request in store.requests[before:] if store.cuts_off(request))
    assert max(asked.values()) <= 20
