"""Disks of a cluster that lived: its records, its metadata and its state are as Kafka says."""

import json
import os
import random
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS, METADATA_TABLES
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.index.log.producer_state import NO_EPOCH
from kafka_segments.kafka.text.names import METADATA_TOPIC, OFFSETS_TOPIC
from kafka_segments.verbs.find.internals.decide.rows import state_at
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.metadata.history import PROBLEMS
from kafka_segments.verbs.find.internals.run import InternalsOptions, run_internals
from support.kafka.cluster_disks import (
    NAMES,
    as_admin_describes,
    assert_equal_image,
    comparable,
    internal_files,
    kafka_images,
    kafka_lines,
    metadata_rows,
    producers_of,
)
from support.kafka.kafka_referee import Referee
from support.kafka.kraft_cluster import let_live

Rows = list[dict[str, Any]]

IMAGES, TABLE_IMAGES = 60, 4
# Admin gives what a resource inherits, too. The second is whether the resource has no name.
OWN_SOURCE = {
    ("TOPIC", False): "DYNAMIC_TOPIC_CONFIG",
    ("BROKER", False): "DYNAMIC_BROKER_CONFIG",
    ("BROKER", True): "DYNAMIC_DEFAULT_BROKER_CONFIG",
    ("CLIENT_METRICS", False): "DYNAMIC_CLIENT_METRICS_CONFIG",
    ("GROUP", False): "DYNAMIC_GROUP_CONFIG",
}
KINDS_OF_A_LIFE = {
    "AccessControlEntryRecord",
    "BrokerRegistrationChangeRecord",
    "ClientQuotaRecord",
    "ConfigRecord",
    "FeatureLevelRecord",
    "PartitionChangeRecord",
    "RemoveTopicRecord",
    "UserScramCredentialRecord",
    "VotersRecord",
    "ConsumerGroupMemberMetadata",
    "GroupMetadata",
    "OffsetCommit",
    "ShareGroupStatePartitionMetadata",
    "StreamsGroupTopology",
    "TransactionLog",
    "ShareSnapshot",
    "ShareUpdate",
    "RemoteLogSegmentMetadataRecord",
    "RemoteLogSegmentMetadataUpdateRecord",
}


class Lived(NamedTuple):
    """What a cluster left."""

    folder: Path

    def answer(self, name: str) -> Any:
        """Give one of the answers of Kafka's Admin."""
        return json.loads((self.folder / "answers" / f"{name}.json").read_text())

    @property
    def last_offset(self) -> int:
        """The last offset of the metadata log that was committed when Admin was asked."""
        offset: int = self.answer("quorum")["high_watermark"] - 1
        return offset


@pytest.fixture(scope="module", params=["golden", pytest.param("fresh", marks=pytest.mark.long)])
def lived(
    request: pytest.FixtureRequest, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> Lived:
    """The disks that are kept, or (long) those of a cluster that lives another life now."""
    if request.param == "golden":
        return Lived(request.getfixturevalue("cluster"))
    folder = tmp_path_factory.mktemp("lived")
    let_live(folder / "run", folder / "cluster", int(os.environ.get("CLUSTER_SEED", seed + 1)))
    return Lived(folder / "cluster")


@pytest.fixture(scope="module")
def tables(
    spark: SparkSession, lived: Lived, tmp_path_factory: pytest.TempPathFactory
) -> Warehouse:
    """What ``internals`` makes of the disks of all nodes."""
    warehouse = str(tmp_path_factory.mktemp("lived") / "warehouse")
    sources = tuple(map(str, sorted((lived.folder / "disks").glob("node-*/*"))))
    with ExitStack() as caches:
        reading = run_internals(
            Warehouse(spark, warehouse), InternalsOptions(Origin(sources)), caches
        )
        assert reading.problems == ()
    return Warehouse(spark, warehouse)


def rows_at(tables: Warehouse, name: str, offset: int) -> Rows:
    """Give the rows of a metadata table that hold at an offset."""
    (table,) = (one for one in METADATA_TABLES if one.name == f"metadata_{name}")
    rows = tables.read(table)
    at = rows.select("cluster").distinct().withColumn("at_offset", F.lit(offset))
    return [row.asDict(recursive=True) for row in rows.transform(state_at(at)).collect()]


def parsed(text: str | None) -> Any:
    return None if text is None else json.loads(text)


@pytest.mark.slow
def test_every_record_of_every_file_is_a_row_with_the_json_of_kafkas_converters(
    referee: Referee, lived: Lived, tables: Warehouse, tmp_path: Path
) -> None:
    columns = ("offset", "timestamp_ms", "kind", "value_version", "key_json", "value_json")
    rows = tables.read(INTERNAL_RECORDS)
    folder = F.concat_ws("/", "log_dir", F.concat_ws("-", "topic", F.col("partition")), "file")
    files = defaultdict(list)
    for path, *values in rows.orderBy("file", "row").select(folder, *columns).collect():
        files[path].append(values)
    kinds = set()

    for topic, file in internal_files(lived.folder / "disks"):
        lines = kafka_lines(referee, topic, file, tmp_path)
        for line, (*plain, key, value) in zip(lines, files.pop(str(file), []), strict=True):
            assert plain == [line.get(name) for name in columns[:4]]
            assert parsed(value) == line.get("value")
            assert line["is_control"] or parsed(key) == line.get("key")
            kinds.add(line["kind"])
    assert not files
    assert kinds >= KINDS_OF_A_LIFE


def test_the_log_alone_gives_kafkas_image_at_drawn_offsets(
    referee: Referee, lived: Lived, tmp_path: Path, seed: int
) -> None:
    folder = lived.folder / "disks" / "node-1" / "a" / f"{METADATA_TOPIC}-0"
    rows, last = metadata_rows(folder)
    offsets = sorted({*random.Random(seed).sample(range(last), IMAGES), last})

    assert not [row for row in rows if row.table == PROBLEMS]
    for image in kafka_images(referee, folder, offsets, tmp_path):
        assert_equal_image(rows, image)


def test_each_snapshot_and_the_log_behind_it_give_kafkas_image(
    referee: Referee, lived: Lived, tmp_path: Path
) -> None:
    folder = lived.folder / "disks" / "node-2" / "a" / f"{METADATA_TOPIC}-0"
    snapshots = sorted(folder.glob("*.checkpoint"))[1:]
    assert len(snapshots) > 1
    for snapshot in snapshots:
        rows, last = metadata_rows(folder, snapshot)
        offsets = [int(snapshot.name.partition("-")[0]) - 1, last]
        for image in kafka_images(referee, folder, offsets, tmp_path, snapshot.name):
            assert_equal_image(rows, image)


@pytest.mark.long
def test_the_tables_hold_kafkas_image_as_of_drawn_offsets(
    referee: Referee, lived: Lived, tables: Warehouse, tmp_path: Path, seed: int
) -> None:
    folder = lived.folder / "disks" / "node-1" / "a" / f"{METADATA_TOPIC}-0"
    offsets = sorted(random.Random(seed).sample(range(lived.last_offset), TABLE_IMAGES))
    for image in kafka_images(referee, folder, offsets, tmp_path):
        for name in NAMES:
            found = rows_at(tables, name, image["offset"])
            assert comparable(found) == comparable(image[name]), (name, image["offset"])


@pytest.mark.slow
def test_topics_partitions_and_features_are_those_that_admin_described(
    lived: Lived, tables: Warehouse
) -> None:
    for name in ("topics", "partitions"):
        described = lived.answer(name)
        found = rows_at(tables, name, lived.last_offset)
        ours = [{column: row[column] for column in described[0]} for row in found]
        assert comparable(ours) == comparable(described), name
    found = rows_at(tables, "features", lived.last_offset)
    levels = {row["feature"]: row["level"] for row in lived.answer("features")}
    assert levels.pop("kraft.version") == 1  # it stands in the quorum's own records
    assert {row["name"]: row["level"] for row in found} == levels


@pytest.mark.slow
def test_configs_are_those_that_admin_described(lived: Lived, tables: Warehouse) -> None:
    described = [
        {name: row[name] for name in ("resource_name", "name", "value")}
        | {"resource_type": row["resource_type"].lower()}
        for row in lived.answer("configs")
        if row["source"] == OWN_SOURCE[row["resource_type"], row["resource_name"] == ""]
    ]
    asked = {
        (row["resource_type"].lower(), row["resource_name"]) for row in lived.answer("configs")
    }

    found = rows_at(tables, "configs", lived.last_offset)

    of_the_living = [row for row in found if (row["resource_type"], row["resource_name"]) in asked]
    assert comparable(of_the_living) == comparable(described)


def last_values(tables: Warehouse, topic: str, kind: str) -> Rows:
    """Give key and value of the last record of each key that has not been deleted."""
    partition = Window.partitionBy("topic", "partition")
    of_key = Window.partitionBy("topic", "partition", "key_json").orderBy(F.desc("offset"))
    ends = F.max("offset").over(Window.partitionBy("broker_id", "topic", "partition"))
    rows = (
        tables.read(INTERNAL_RECORDS)
        .where((F.col("topic") == topic) & (F.col("kind") == kind))
        .withColumn("_end", ends)
        .withColumn("_greatest_end", F.max("_end").over(partition))
        .where("_end = _greatest_end")
        .withColumn("_turn", F.row_number().over(of_key))
        .where("_turn = 1 AND value_json IS NOT NULL")
    )
    return [
        json.loads(row["key_json"]) | json.loads(row["value_json"])
        for row in rows.select("key_json", "value_json").collect()
    ]


@pytest.mark.slow
def test_transactions_are_those_that_admin_described(lived: Lived, tables: Warehouse) -> None:
    last = last_values(tables, "__transaction_state", "TransactionLog")
    ours = list(map(as_admin_describes, last))
    columns = ours[0].keys()
    described = [
        {column: row[column] for column in columns} for row in lived.answer("transactions")
    ]

    assert comparable(ours) == comparable(described)


@pytest.mark.slow
def test_committed_offsets_are_those_that_admin_listed(lived: Lived, tables: Warehouse) -> None:
    ours = {
        (last["group"], last["topic"], last["partition"]): (last["offset"], last["metadata"])
        for last in last_values(tables, OFFSETS_TOPIC, "OffsetCommit")
    }
    shares = {row["group"] for row in lived.answer("groups") if row["type"] == "Share"}
    listed = {
        (row["group"], row["topic"], row["partition"]): (row["offset"], row["metadata"] or "")
        for row in lived.answer("group_offsets")
        if row["group"] not in shares and row["offset"] is not None
    }

    assert ours == listed


@pytest.mark.slow
def test_producers_of_leaders_are_those_that_admin_described(lived: Lived) -> None:
    described: dict[tuple[str, int], Rows] = defaultdict(list)
    for row in lived.answer("producers"):
        described[row.pop("topic"), row.pop("partition")].append(row)
    for leader in lived.answer("partitions"):
        name = f"{leader['topic']}-{leader['partition']}"
        (folder,) = (lived.folder / "disks" / f"node-{leader['leader']}").glob(f"*/{name}")
        state = producers_of(folder)
        # A broker remembers of a producer what the cleaner has taken from the log.
        cleaned = {
            producer_id for producer_id, entry in state.entries.items() if entry.epoch == NO_EPOCH
        }
        ours = [
            {
                "producer_id": producer_id,
                "producer_epoch": entry.epoch,
                "coordinator_epoch": known_epoch(entry.coordinator_epoch),
                "last_sequence": entry.batch.last_sequence,
                "last_timestamp_ms": entry.timestamp,
                "transaction_start_offset": state.open.get(producer_id),
            }
            for producer_id, entry in state.entries.items()
            if producer_id not in cleaned
        ]
        kafkas = described[leader["topic"], leader["partition"]]
        kept = [row for row in kafkas if row["producer_id"] not in cleaned]
        assert comparable(ours) == comparable(kept), name


def known_epoch(epoch: int) -> int | None:
    return None if epoch == NO_EPOCH else epoch
