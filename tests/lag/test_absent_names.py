"""Share groups, topics and clusters that are asked for, and of which the tables have nothing."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.tables.catalog import (
    INTERNAL_RECORDS,
    LOGS,
    METADATA_PARTITIONS,
    SEGMENTS,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.messages.records import SHARES_TOPIC
from support.spark.filled_tables import fill

pytestmark = pytest.mark.spark

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
OF = {"cluster": "prod", "broker_id": 1, "log_dir": "/d"}
STATE = {
    **{**OF, "topic": SHARES_TOPIC, "file": "0.log", "offset": 0, "timestamp_ms": 5},
    **{"kind": "ShareSnapshot", "is_tombstone": False, "leader_epoch": 0},
    "key_json": json.dumps({"groupId": "readers", "topicId": TOPIC_ID, "partition": 0}),
    "value_json": json.dumps({"startOffset": 3, "deliveryCompleteCount": 0}),
}


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("absent") / "w"
    tables, log = Warehouse(spark, str(root)), {**OF, "topic": "orders"}
    segment = {"next_offset": 9, "is_active": True, "path": "/d/0.log"}
    fill(tables, SEGMENTS, [{**log, **segment, "largest_timestamp_source": "record"}])
    fill(tables, LOGS, [{**log, "topic_id": TOPIC_ID, "folder_state": "live"}])
    fill(tables, INTERNAL_RECORDS, [STATE])
    fill(tables, METADATA_PARTITIONS, [{"cluster": "prod", "topic": SHARES_TOPIC}])
    return root


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lag", "--share-groups", "--group", "reader"), "share group reader: it has readers"),
        (
            ("lag", "--share-groups", "--cluster", "prd"),
            "records of __share_group_state of cluster prd: it has prod",
        ),
        (("lag", "--share-groups", "--topic", "oders"), "segments of topic oders: it has orders"),
        (
            (
                *("search", "failover", "--group", "g", "--max-latency", "1s"),
                *("--cluster", "prod", "--to-cluster", "prd"),
            ),
            "logs of cluster prd: it has prod",
        ),
    ],
)
def test_what_is_not_in_the_tables_is_refused_with_the_nearest_name(
    warehouse: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = CliRunner().invoke(cli, [*arguments, "--warehouse", str(warehouse)])

    assert done.exit_code == 2, done.output
    assert done.stderr.splitlines()[-1] == f"kafka-segments: {warehouse} has no {message}"


def test_a_share_group_may_lie_in_partitions_that_were_not_read(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    part = shutil.copytree(warehouse, tmp_path / "w")
    unread = {"cluster": "prod", "topic": SHARES_TOPIC, "partition": 1}
    fill(Warehouse(spark, str(part)), METADATA_PARTITIONS, [unread])

    asked = ("lag", "--share-groups", "--group", "reader")
    done = CliRunner().invoke(cli, [*asked, "--warehouse", str(part)])

    assert done.exit_code == 1, done.output
    assert (
        "group reader: not known: not all of __share_group_state was read"
        in done.stderr.splitlines()
    )
