"""A build that reads the cluster's own topics, too."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import metadata_logs as made
from kafka_segments.cli import cli
from kafka_segments.tables.catalog import INTERNAL_RECORDS, METADATA_TOPICS, SEGMENTS
from kafka_segments.tables.delta import Warehouse


def build(*arguments: object) -> Any:
    return CliRunner().invoke(cli, ["build", *map(str, arguments)], catch_exceptions=False)


@pytest.mark.spark
def test_internal_topics_are_read_where_that_is_asked_for_and_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = made.log_bytes([made.topic("orders", 7), made.partition(7, 0)])
    disk = made.log_dir(tmp_path / "disk", {f"{0:020d}.log": log})
    warehouse = tmp_path / "warehouse"
    asked = ("--source", disk, "--warehouse", warehouse)
    tables = Warehouse(spark, str(warehouse))

    plain = build(*asked)
    assert plain.exit_code == 0
    assert tables.read(SEGMENTS).count() == 1
    assert tables.version(INTERNAL_RECORDS) is None
    assert "unreadable" not in plain.stderr

    first = build(*asked, "--internals")
    again = build(*asked, "--internals")

    assert (first.exit_code, again.exit_code) == (0, 0)
    assert "1 logs, 1 of them read, 2 records; 0 places unreadable" in first.stderr
    assert "1 logs, 0 of them read, 2 records; 0 places unreadable" in again.stderr
    assert [row["topic"] for row in tables.read(METADATA_TOPICS).collect()] == ["orders"]


def test_a_dry_run_of_them_is_refused(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    asked = ("--source", tmp_path / "disk", "--warehouse", tmp_path / "warehouse")

    refused = build(*asked, "--internals", "--dry-run")

    assert refused.exit_code == 2
    assert "--internals has no dry run" in refused.stderr
