"""What verbs say of settings, ids and obstacles where a cluster's disks alone tell them."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.settings import TopicConfig
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.run import InternalsOptions, run_internals
from support.house.at_length import long_but
from support.spark.stored_builds import build_few

# Of a topic's settings those that Kafka's Admin has from the metadata log.
DYNAMIC = {"DYNAMIC_TOPIC_CONFIG": "topic", "DYNAMIC_DEFAULT_BROKER_CONFIG": "cluster-wide dynamic"}
LOGS = ("orders-2", "tiered-0", "careful-0", "__transaction_state-0", "__share_group_state-0")


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Tables of one log directory of the cluster, and of its metadata log."""
    disk, tables = str(cluster / "disks" / "node-1" / "a"), str(tmp_path_factory.mktemp("settings"))
    build_few(spark, disk, tables)
    with few_rows(spark), ExitStack() as caches:
        run_internals(
            Warehouse(spark, tables), InternalsOptions(Origin((disk,), (METADATA_TOPIC,))), caches
        )
    return tables


def _run(warehouse: str, *words: str) -> Any:
    done = CliRunner().invoke(cli, [*words, "--warehouse", warehouse], catch_exceptions=False)
    assert done.exit_code in (0, 1), done.stderr
    return done


@pytest.mark.slow
@pytest.mark.parametrize("log", long_but(LOGS, "orders-2"))
def test_explain_has_each_setting_that_admin_described_and_its_source(
    cluster: Path, warehouse: str, log: str
) -> None:
    topic = log.rpartition("-")[0]
    described = {
        (row["name"], row["value"], DYNAMIC[row["source"]])
        for row in json.loads((cluster / "answers" / "configs.json").read_text())
        if (row["resource_type"], row["resource_name"]) == ("TOPIC", topic)
        and row["source"] in DYNAMIC
        and row["name"].replace(".", "_") in TopicConfig.model_fields
    }

    done = _run(warehouse, "retention", "explain", log, "--output", "json")

    told = [json.loads(line)["settings"] for line in done.stdout.splitlines()]
    from_log = {
        (one["name"], one["value"], one["source"].partition(": metadata log, offset")[0])
        for one in told[0]
        if "metadata log" in one["source"]
    }
    assert described
    assert from_log == described
    assert all(settings == told[0] for settings in told)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("retention", "--dry-run"), marks=pytest.mark.long),
        ("retention", "--dry-run", "--output", "json"),
        pytest.param(("retention", "--what-if", "retention_ms=1"), marks=pytest.mark.long),
        pytest.param(("retention", "plan", "--dry-run"), marks=pytest.mark.long),
        ("migrate", "inventory", "--dry-run"),
    ],
    ids=" ".join,
)
def test_decisions_say_on_stderr_which_settings_decided_and_where_they_are_from(
    warehouse: str, words: tuple[str, ...]
) -> None:
    told = [line.strip() for line in _run(warehouse, *words).stderr.splitlines()]

    found = [line for line in told if line.startswith("retention.ms = 363600000 (4 d 5 h)")]
    assert [line.partition("[topic: metadata log, offset")[1] != "" for line in found] == [True]
    assert found[0].endswith(": orders")
    assert [line for line in told if line.startswith("local.retention.ms = 1000")]
    assert [line for line in told if line.startswith("cleanup.policy = delete   [Kafka's default]")]


@pytest.mark.slow
def test_rolls_say_on_stderr_which_settings_decided_and_where_they_are_from(
    warehouse: str,
) -> None:
    told = _run(warehouse, "roll", "--dry-run").stderr

    assert "segment.ms = 86400000 (1 d 0 h)   [cluster-wide dynamic: metadata log, offset" in told
    assert "segment.bytes = 104857600   [topic: metadata log, offset" in told
