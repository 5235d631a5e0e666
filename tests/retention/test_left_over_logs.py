"""A log that is left over from a deleted topic, beside one of the topic of its name now."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.derived.logs_in_tables import KnownLog, logs_of_topics
from kafka_segments.engine.tables.catalog import METADATA_PARTITIONS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.schemas import schema
from kafka_segments.kafka.text.topic_ids import encode_partition_metadata

pytestmark = pytest.mark.spark

LOG, TOPIC = "lat-none-0", "lat-none"
IDS = {"left": "AAAAAAAAAAAAAAAAAAAAAQ", "now": "AAAAAAAAAAAAAAAAAAAAAg"}
OF_THE_TOPIC = "[topic: "
Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def asked(
    spark: SparkSession, broker: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, ...]:
    """Two disks of a broker have logs of one name; the metadata knows the topic of one of them."""
    folder = tmp_path_factory.mktemp("left-over")
    for disk, topic_id in IDS.items():
        shutil.copytree(broker / "logs" / LOG, folder / "logs" / disk / LOG)
        metadata = folder / "logs" / disk / LOG / "partition.metadata"
        metadata.write_bytes(encode_partition_metadata(topic_id))
    build = ("build", "--source", str(folder / "logs"), "--warehouse", str(folder / "w"))
    assert CliRunner().invoke(cli, build).exit_code in (0, 1)
    _name(spark, folder / "w", IDS["now"])
    configs = folder / "configs.txt"
    configs.write_text(f"Dynamic configs for topic {TOPIC} are:\n  segment.ms=77\n", "utf-8")
    return ("--warehouse", str(folder / "w"), "--topic-configs", str(configs))


def _name(spark: SparkSession, warehouse: Path, topic_id: str) -> None:
    """Write what the metadata says of the topic."""
    named = dict.fromkeys(METADATA_PARTITIONS.schema.names) | {
        **{"cluster": "", "topic": TOPIC, "topic_id": topic_id, "partition": 0},
        **{"replicas": [-1], "isr": [-1], "elr": [], "last_known_elr": [], "directories": []},
        **{"removing_replicas": [], "adding_replicas": [], "leader": -1, "leader_epoch": 0},
        **{"partition_epoch": 0, "leader_recovery_state": "recovered", "from_offset": 0},
        "is_from_snapshot": False,
    }
    rows = spark.createDataFrame([tuple(named.values())], schema("metadata_partitions.v1"))
    Warehouse(spark, str(warehouse)).append(METADATA_PARTITIONS, rows)


def _by_disk(*arguments: str) -> Rows:
    done = CliRunner().invoke(cli, [*arguments, "--output", "json"])
    assert done.exit_code == 0, done.output
    return {Path(row["log_dir"]).name: row for row in map(json.loads, done.stdout.splitlines())}


@pytest.mark.slow
def test_explain_lists_no_settings_of_the_topic_that_has_its_name_now(asked: tuple[str, ...]):
    rows = _by_disk("retention", "explain", LOG, *asked)

    assert {disk: row["reason_code"] == "left_over" for disk, row in rows.items()} == {
        "left": True,
        "now": False,
    }
    assert rows["left"]["settings"] == []
    told = {one["name"]: one["value"] for one in rows["now"]["settings"]}
    assert told["segment.ms"] == "77"
    printed = CliRunner().invoke(cli, ["retention", "explain", LOG, *asked]).stdout
    assert printed.count("  segment.ms = 77") == 1
    assert "  the settings of the topic that it is of are not known\n" in printed


def test_roll_decides_nothing_of_it(asked: tuple[str, ...]):
    rows = _by_disk("roll", "--dry-run", *asked)

    assert rows["left"]["decision"] == "unknown"
    assert rows["left"]["reason"].startswith("left over from a topic that was deleted")
    assert rows["now"]["rule"] == "segment_ms"


def test_its_history_is_not_cut_anew(asked: tuple[str, ...]):
    rows = _by_disk("roll", "--what-if", "segment.bytes=100000", *asked)

    assert (rows["left"]["segments"], rows["now"]["not_decided"]) == (None, None)
    assert rows["left"]["not_decided"].startswith("left over from a topic that was deleted")
    assert rows["now"]["segments"] > 0


def test_settings_are_told_of_no_topic_whose_logs_are_all_left_over(
    spark: SparkSession, asked: tuple[str, ...], tmp_path: Path
):
    warehouse = Path(shutil.copytree(asked[1], tmp_path / "w"))
    shutil.rmtree(warehouse / METADATA_PARTITIONS.name)
    unnamed = logs_of_topics(str(warehouse))
    _name(spark, warehouse, "AAAAAAAAAAAAAAAAAAAAAw")

    assert logs_of_topics(asked[1]) == unnamed == {KnownLog("", TOPIC, -1)}
    assert logs_of_topics(str(warehouse)) == set()


def test_what_if_tells_of_a_left_over_log_that_nothing_is_decided(asked: tuple[str, ...]):
    moment = ("--now-ms", "1795305600000")  # the day after the records: none is seven days old
    arguments = ["retention", *asked, *moment, "--what-if", "retention_ms=1", "--output", "json"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]

    by_decided = {row["not_decided"] is None: row for row in rows}
    assert len(rows) == 2
    assert "left over" in by_decided[False]["not_decided"]
    assert by_decided[False]["segments"] == by_decided[False]["today_segments"]
    assert by_decided[True]["segments"] < by_decided[True]["today_segments"]


def test_where_it_is_cut_for_a_restore_is_not_known(asked: tuple[str, ...]):
    arguments = ["search", "restore", *asked[:2], "--at", "2100-01-01T00:00:00Z"]
    done = CliRunner().invoke(cli, [*arguments, "--output", "json"])
    rows = {Path(row["log_dir"]).name: row for row in map(json.loads, done.stdout.splitlines())}

    assert done.exit_code == 1, done.output
    assert rows["now"]["last_offset_kept"] is not None
    assert (rows["left"]["last_offset_kept"], rows["left"]["bytes_needed"]) == (None, None)
    assert "left over from a topic that was deleted" in rows["left"]["problem"]
