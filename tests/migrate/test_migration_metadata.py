"""A plan takes topic ids and replicas from the cluster's own metadata."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.derived.metadata_topics import read_metadata_topics
from kafka_segments.verbs.change.migrate.decide.assignment import with_assignment
from support.logs import metadata_logs as made
from support.logs.strategies import v2_batch
from support.spark.rows_of import rows_of

pytestmark = pytest.mark.spark

RECORDS = [
    made.feature("metadata.version", 25),
    made.topic("orders", 7),
    made.partition(7, 0),
    made.config("orders", "index.interval.bytes", "100"),
    made.config("orders", "max.message.bytes", "2000000"),
    made.config("", "log.index.size.max.bytes", "4096", kind=4),
    made.topic("gone", 8),
    made.remove_topic(8),
]


def _run(*arguments: object) -> Any:
    done = CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metadata")
    disk = made.log_dir(folder / "controller", {f"{0:020d}.log": made.log_bytes(RECORDS)})
    _run("internals", "--source", disk, "--warehouse", folder / "warehouse")
    return folder / "warehouse"


def _old_logs(folder: Path, *, broker_id: int, cluster: str = made.CLUSTER) -> Path:
    (folder / "orders-0").mkdir(parents=True)
    (folder / "orders-0" / f"{0:020d}.log").write_bytes(v2_batch(0, [(1, None, b"x")]))
    (folder / "meta.properties").write_text(
        f"version=0\nbroker.id={broker_id}\ncluster.id={cluster}\n"
    )
    (folder / ".kafka_cleanshutdown").touch()
    return folder


def _plan(logs: Path, warehouse: Path, *options: object) -> tuple[dict[str, Any], str]:
    done = _run(
        *("migrate", "plan", "--source", logs, "--warehouse", warehouse, "--dry-run"),
        *("--output", "json", *options),
    )
    (row,) = [json.loads(line) for line in done.stdout.splitlines()]
    return row, done.stderr


@pytest.mark.slow
def test_ids_and_replicas_are_those_of_the_metadata_at_the_moment(
    warehouse: Path, tmp_path: Path
) -> None:
    logs = _old_logs(tmp_path / "logs", broker_id=9)
    now_ms = made.START_MS + 60_000

    row, said = _plan(logs, warehouse, "--now-ms", now_ms)

    assert row["topic_id"] == made.uuid_text(7)
    assert row["hazards"] == [
        "the metadata has its replicas on brokers 1, 2: a KRaft broker with another id renames the"
        " folder to -stray"
    ]
    assert (
        "ids, replicas and settings of 1 topics taken from the metadata log of cluster"
        f" {made.CLUSTER}, 2023-11-14 22:14:20.000 UTC"
    ) in said


@pytest.mark.slow
def test_given_ids_win_and_before_the_history_nothing_is_taken(
    warehouse: Path, tmp_path: Path
) -> None:
    logs = _old_logs(tmp_path / "logs", broker_id=9)
    ids = tmp_path / "ids.txt"
    ids.write_text(f"Topic: orders TopicId: {made.uuid_text(3)}\n")

    given, said = _plan(logs, warehouse, "--topic-ids", ids)
    early, why = _plan(logs, warehouse, "--now-ms", made.START_MS - 1)

    assert (given["topic_id"], given["hazards"]) == (made.uuid_text(3), [])
    assert "metadata log" not in said
    assert early["topic_id"] is None
    assert "the history of its metadata begins at" in why


@pytest.mark.slow
def test_a_topic_is_migrated_by_its_own_settings_and_options_of_the_verb_win(
    warehouse: Path, tmp_path: Path
) -> None:
    logs = _old_logs(tmp_path / "logs", broker_id=9)
    names = ("index_interval_bytes", "segment_index_bytes", "max_message_bytes")

    def rules(*options: object) -> tuple[int, ...]:
        row, _ = _plan(logs, warehouse, *options)
        return tuple(json.loads(row["rules"])[name] for name in names)

    assert rules() == (100, 4096, 2_000_000)
    assert rules("--segment-index-bytes", 8192, "--max-message-bytes", 9) == (100, 8192, 9)
    assert rules("--cluster", "other") == (4096, 10_485_760, 1_048_588)


@pytest.mark.slow
def test_logs_of_another_cluster_take_neither_ids_nor_replicas(
    warehouse: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = _old_logs(tmp_path / "logs", broker_id=9, cluster="other")

    row, _ = _plan(logs, warehouse)
    named, _ = _plan(logs, warehouse, "--cluster", made.CLUSTER)

    assert row["topic_id"] is None
    assert not [hazard for hazard in row["hazards"] if "replicas on brokers" in hazard]
    (said,) = caplog.messages
    assert said.startswith(f"cluster other: {warehouse} has no metadata of it, but of")
    assert named["topic_id"] == made.uuid_text(7)


def test_what_held_is_read_without_spark_and_by_cluster(warehouse: Path, tmp_path: Path) -> None:
    between, after = (
        read_metadata_topics(str(warehouse), {made.CLUSTER: offset}) for offset in (6, 8)
    )

    assert [set(held.ids) for held in between] == [{"orders", "gone"}]
    assert after == ((made.CLUSTER, {"orders": made.uuid_text(7)}, {("orders", 0): (1, 2)}),)
    assert read_metadata_topics(str(tmp_path), {}) == ()


def test_a_broker_without_an_id_or_an_unknown_topic_is_no_hazard(spark: SparkSession) -> None:
    logs = [
        ("c", "orders", 1, []),
        ("c", "orders", 3, ["x"]),
        ("c", "orders", -1, []),
        ("c", "b", 3, []),
        ("other", "orders", 4, []),
    ]
    segments = rows_of(
        spark,
        [(cluster, topic, 0, broker_id, hazards) for cluster, topic, broker_id, hazards in logs],
        "cluster string, topic string, partition int, broker_id int, hazards array<string>",
    )
    assigned = rows_of(
        spark,
        [("c", "orders", 0, [1, 2])],
        "cluster string, topic string, partition int, assigned_replicas array<int>",
    )

    found = segments.transform(with_assignment(assigned)).orderBy("topic", "broker_id").collect()

    assert [len(row["hazards"]) for row in found] == [0, 0, 0, 2, 0]
    assert found[3]["hazards"][0] == "x"
