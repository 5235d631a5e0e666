"""A build that reads the cluster's own topics, too."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS, METADATA_TOPICS, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from support.logs import metadata_logs as made


def build(*arguments: object) -> Any:
    return CliRunner().invoke(cli, ["build", *map(str, arguments)], catch_exceptions=False)


class Disk(NamedTuple):
    """A controller's disk as options of builds, and what they fill."""

    asked: tuple[object, ...]
    tables: Warehouse


@pytest.fixture(scope="module")
def disk(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Disk:
    """A disk of which a build has read the segments alone."""
    folder = tmp_path_factory.mktemp("disk")
    log = made.log_bytes([made.topic("orders", 7), made.partition(7, 0)])
    logs = made.log_dir(folder / "disk", {f"{0:020d}.log": log})
    disk = Disk(
        ("--source", logs, "--warehouse", folder / "warehouse"),
        Warehouse(spark, str(folder / "warehouse")),
    )
    plain = build(*disk.asked)
    assert plain.exit_code == 0
    assert "unreadable" not in plain.stderr
    return disk


@pytest.mark.usefixtures("few")
def test_internal_topics_are_read_only_where_that_is_asked_for(disk: Disk) -> None:
    assert disk.tables.read(SEGMENTS).count() == 1
    assert disk.tables.version(INTERNAL_RECORDS) is None


@pytest.fixture(scope="module")
def read(disk: Disk) -> Disk:
    first = build(*disk.asked, "--internals")
    assert first.exit_code == 0
    assert "1 logs, 1 of them read, 2 records; 0 places unreadable" in first.stderr
    return disk


@pytest.mark.usefixtures("few")
def test_internal_topics_that_a_build_read_are_in_the_tables(read: Disk) -> None:
    topics = read.tables.read(METADATA_TOPICS).collect()

    assert [row["topic"] for row in topics] == ["orders"]


def test_internal_topics_are_read_once(read: Disk) -> None:
    again = build(*read.asked, "--internals")

    assert again.exit_code == 0
    assert "1 logs, 0 of them read, 2 records; 0 places unreadable" in again.stderr


def test_a_dry_run_of_them_is_refused(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    asked = ("--source", tmp_path / "disk", "--warehouse", tmp_path / "warehouse")

    refused = build(*asked, "--internals", "--dry-run")

    assert refused.exit_code == 2
    assert "--internals has no dry run" in refused.stderr
