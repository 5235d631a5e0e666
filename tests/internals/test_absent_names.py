"""Clusters, brokers and topics that are asked for, and of which the tables have nothing."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.tables.catalog import (
    INTERNAL_RECORDS,
    METADATA_CONFIGS,
    METADATA_PARTITIONS,
    METADATA_PROBLEMS,
    METADATA_TOPICS,
)
from kafka_segments.engine.tables.delta import Warehouse
from support.spark.filled_tables import fill

pytestmark = pytest.mark.spark

LACKS = {"cluster": "prod", "number": 0, "at_offset": 7, "problem": "not known: from offset 7 on"}


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("absent") / "w"
    tables = Warehouse(spark, str(root))
    of = {"cluster": "prod", "broker_id": 1, "file": "0.log", "offset": 0}
    topics = ("__consumer_offsets", "__remote_log_metadata")
    fill(tables, INTERNAL_RECORDS, [{**of, "topic": topic} for topic in topics])
    fill(tables, METADATA_CONFIGS, [])
    fill(tables, METADATA_PARTITIONS, [{"cluster": "prod", "topic": "orders"}])
    fill(tables, METADATA_TOPICS, [{"cluster": "prod", "topic": "orders"}])
    fill(tables, METADATA_PROBLEMS, [LACKS])
    return root


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("changed", "--cluster", "prd"), "metadata of cluster prd: it has prod"),
        (("read", "--at", "5", "--cluster", "prd"), "metadata of cluster prd: it has prod"),
        (
            ("groups", "--cluster", "prd"),
            "records of __consumer_offsets of cluster prd: it has prod",
        ),
        (("groups", "--broker-id", "2"), "records of __consumer_offsets of broker 2: it has 1"),
        (
            ("tier", "--cluster", "prd"),
            "records of __remote_log_metadata of cluster prd: it has prod",
        ),
        (
            ("tier", "--topic", "oders"),
            "remote segments or logs of topic oders: it has orders",
        ),
    ],
)
def test_what_is_not_in_the_tables_is_refused_with_the_nearest_name(
    warehouse: Path, arguments: tuple[str, ...], message: str
) -> None:
    verb, *options = arguments
    done = CliRunner().invoke(cli, ["internals", verb, "--warehouse", str(warehouse), *options])

    assert done.exit_code == 2, done.output
    assert done.stderr.splitlines()[-1] == f"kafka-segments: {warehouse} has no {message}"


@pytest.mark.slow
def test_tier_says_what_the_metadata_lacks(warehouse: Path) -> None:
    asked = ("internals", "tier", "--topic", "orders", "--dry-run")
    done = CliRunner().invoke(cli, [*asked, "--warehouse", str(warehouse)])

    assert done.exit_code == 1, done.output
    assert "cluster prod: not known: from offset 7 on" in done.stderr.splitlines()
