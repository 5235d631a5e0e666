"""What brokers of older releases wrote and answered, beside our tables; see older_lives.py."""

import base64
import json
import random
import re
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.derived.metadata_configs import read_metadata_configs
from kafka_segments.engine.derived.metadata_in_tables import clusters_with_metadata
from kafka_segments.engine.derived.metadata_topics import read_metadata_topics
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.broker_rules.group_records import group_record_rules
from kafka_segments.kafka.broker_rules.versions import parse_version
from kafka_segments.kafka.messages.consumer_protocol import with_members_read
from kafka_segments.kafka.messages.layout import ZERO_UUID
from kafka_segments.kafka.messages.records import TRANSACTIONS_TOPIC
from kafka_segments.kafka.text.names import METADATA_TOPIC, OFFSETS_TOPIC
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.groups.decide.groups import (
    FAILS,
    LOADS,
    SKIPS,
    decide_groups,
)
from kafka_segments.verbs.find.internals.metadata.history import PROBLEMS
from kafka_segments.verbs.find.internals.run import InternalsOptions, run_internals
from support.kafka.cluster_disks import (
    as_admin_describes,
    assert_equal_image,
    comparable,
    kafka_images,
    metadata_rows,
)
from support.kafka.kafka_referee import Referee
from support.logs.internal_rows import internal_frame, rows_of_file, rows_of_log

RELEASES = ("2.8.2", "3.0.2", "3.3.2", "3.4.0", "3.4.1", "3.9.1")
WITH_KRAFT = RELEASES[1:]
# Kafka 4.3 makes an image of metadata.version 3.3-IV3 and later.
WITH_IMAGE = RELEASES[2:]
NEWEST = "3.9.1"  # with the new coordinator, tiered storage and converters for all records
CASES = ("of 3.7", "of 4.1", "a commit of version 4", "a value cut off", "nothing")
LOADING = (
    (("2.8.2", "3.0.2", "3.3.2", "3.4.0"), (FAILS, FAILS, FAILS, FAILS, LOADS)),
    (("3.4.1",), (SKIPS, SKIPS, LOADS, FAILS, LOADS)),
    ((NEWEST,), (LOADS, SKIPS, LOADS, FAILS, LOADS)),
)
RENAMED_SINCE_3_0 = ('"producerIdsEnd"', '"nextProducerId"')
ABSENT = (None, -1, 0, "", [], ZERO_UUID)
IMAGES = 10

Rows = list[dict[str, Any]]


def parsed(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def is_told(ours: Any, theirs: Any) -> bool:
    """Tell whether ours is theirs but for fields that the version does not have.

    Until 3.8 a release has no converters for the records of coordinators: it tells all fields.
    """
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() <= theirs.keys() and all(
            is_told(ours[name], value) if name in ours else value in ABSENT
            for name, value in theirs.items()
        )
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(is_told, ours, theirs))
    return bool(ours == theirs)


def as_dumped(told: Any) -> Any:
    """Give a classic group as kafka-dump-log does, which reads its members' bytes."""
    if not isinstance(told, dict) or "members" not in told or "protocolType" not in told:
        return told
    names = ("subscription", "assignment")
    members = [{name: base64.b64decode(one[name]) for name in names} for one in told["members"]]
    return with_members_read(told, {**told, "members": members})


@pytest.mark.parametrize("release", RELEASES)
def test_every_record_is_read_as_the_release_that_wrote_it_reads_it(
    older: Path, release: str
) -> None:
    expected = defaultdict(list)
    for text in (older / release / "records.jsonl").read_text().splitlines():
        line = json.loads(re.sub(*RENAMED_SINCE_3_0, text))
        expected[line["folder"], line["file"]].append(line)
    kinds = set()

    for (folder, name), lines in expected.items():
        rows = rows_of_file(older / release / "logs" / folder / name)
        is_converted = release == NEWEST or folder.startswith(METADATA_TOPIC)
        for row, line in zip(rows, lines, strict=True):
            assert (row["offset"], row["timestamp_ms"]) == (line["offset"], line["timestamp_ms"])
            assert row["problem"] is None
            if not line["is_control"]:
                assert "problem" not in line
                names = ("kind", "value_version")
                assert [row[name] for name in names] == [line.get(name) for name in names]
                for ours, theirs in (("key_json", "key"), ("value_json", "value")):
                    found, told = parsed(row[ours]), as_dumped(line.get(theirs))
                    assert found == told if is_converted else is_told(found, told), row
                kinds.add(row["kind"])

    assert kinds >= {"OffsetCommit", "GroupMetadata", "TransactionLog"}
    assert (release == "2.8.2") != ("PartitionRecord" in kinds)
    assert (release == NEWEST) == ("ConsumerGroupMetadata" in kinds)
    assert (release == NEWEST) == ("RemoteLogSegmentMetadataRecord" in kinds)


@pytest.mark.parametrize("release", RELEASES)
def test_the_cleaner_was_there_and_history_lies_behind_it(older: Path, release: str) -> None:
    for topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
        rows = rows_of_log(older / release / "logs" / f"{topic}-0")
        offsets = [row["offset"] for row in rows if row["offset"] is not None]
        assert len(offsets) < offsets[-1] + 1
        keys = [row["key_json"] for row in rows if row["value_json"]]
        assert len(set(keys)) < len(keys)


@pytest.mark.slow
@pytest.mark.parametrize(
    "release",
    [WITH_KRAFT[0], *(pytest.param(other, marks=pytest.mark.long) for other in WITH_KRAFT[1:])],
)
def test_settings_and_ids_are_taken_from_the_metadata_of_each_release(
    spark: SparkSession, older: Path, release: str, tmp_path: Path
) -> None:
    answers = json.loads((older / release / "answers.json").read_text())
    warehouse, origin = str(tmp_path), Origin((str(older / release / "logs"),), (METADATA_TOPIC,))
    with few_rows(spark), ExitStack() as caches:
        run_internals(Warehouse(spark, warehouse), InternalsOptions(origin), caches)

    at_offset = clusters_with_metadata(warehouse, at_ms=2**62).at_offset
    (configs,) = read_metadata_configs(warehouse, at_offset)
    (topics,) = read_metadata_topics(warehouse, at_offset)

    assert {
        (one.resource_name, one.name, one.value)
        for one in configs.configs
        if one.resource_type == "topic"
    } == {(row["resource_name"], row["name"], row["value"]) for row in answers["configs"]}
    assert topics.ids == {row["topic"]: row["topic_id"] for row in answers["topics"]}
    assert topics.replicas == {
        (row["topic"], row["partition"]): tuple(row["replicas"]) for row in answers["partitions"]
    }


@pytest.mark.parametrize("release", WITH_KRAFT)
def test_the_metadata_is_what_admin_described(older: Path, release: str) -> None:
    answers = json.loads((older / release / "answers.json").read_text())
    folder = older / release / "logs" / f"{METADATA_TOPIC}-0"
    snapshots = sorted(folder.glob("*.checkpoint"))
    assert len([one for one in snapshots if int(one.name[:20])]) > 0

    for snapshot in (None, *snapshots):
        rows, _ = metadata_rows(folder, snapshot)
        assert not [row for row in rows if row.table == PROBLEMS]
        held = defaultdict(list)
        for row in rows:
            if row.until is None:
                held[row.table.removeprefix("metadata_")].append(row.values)
        for name in ("topics", "partitions"):
            columns = answers[name][0].keys()
            ours = [{column: row[column] for column in columns} for row in held[name]]
            assert comparable(ours) == comparable(answers[name]), (name, snapshot)
        configs = [
            {name: row[name] for name in ("resource_name", "name", "value")}
            for row in held["configs"]
            if row["resource_type"] == "topic"
        ]
        assert comparable(configs) == comparable(answers["configs"])
        quotas = [
            json.loads(row["value"]) for row in held["entries"] if row["kind"] == "client-quota"
        ]
        assert comparable(quotas) == comparable(answers["quotas"])
        assert {row["name"]: row["level"] for row in held["features"]} == answers["features"]


@pytest.mark.parametrize("release", WITH_IMAGE)
def test_the_log_gives_kafkas_image_at_drawn_offsets(
    referee: Referee, older: Path, tmp_path: Path, release: str, seed: int
) -> None:
    folder = older / release / "logs" / f"{METADATA_TOPIC}-0"
    rows, last = metadata_rows(folder)
    offsets = sorted({*random.Random(seed).sample(range(20, last), IMAGES), last})

    for image in kafka_images(referee, folder, offsets, tmp_path):
        assert_equal_image(rows, image)


def last_values(older: Path, release: str, topic: str, kind: str) -> Rows:
    """Give key and value of the last record of each key that has not been deleted."""
    last: dict[str, str | None] = {}
    for row in rows_of_log(older / release / "logs" / f"{topic}-0"):
        if row["kind"] == kind:
            last[row["key_json"]] = row["value_json"]
    return [json.loads(key) | json.loads(value) for key, value in last.items() if value is not None]


@pytest.mark.parametrize("release", RELEASES)
def test_committed_offsets_are_those_that_admin_listed(older: Path, release: str) -> None:
    answers = json.loads((older / release / "answers.json").read_text())

    ours = [
        {name: last[name] for name in ("group", "topic", "partition", "offset", "metadata")}
        for last in last_values(older, release, OFFSETS_TOPIC, "OffsetCommit")
    ]

    assert comparable(ours) == comparable(answers["group_offsets"])


@pytest.mark.parametrize("release", WITH_KRAFT)
def test_transactions_are_those_that_admin_described(older: Path, release: str) -> None:
    described = json.loads((older / release / "transactions.json").read_text())

    last = last_values(older, release, TRANSACTIONS_TOPIC, "TransactionLog")
    ours = list(map(as_admin_describes, last))
    for row in ours:
        row.pop("start_ms")  # was not asked of Admin then

    assert comparable(ours) == comparable(described)
    assert "Ongoing" in {row["state"] for row in ours}


def test_groups_states_and_members_are_those_that_admin_described(
    spark: SparkSession, older: Path
) -> None:
    rows = [
        row
        for number, release in enumerate(RELEASES)
        for row in rows_of_log(older / release / "logs" / f"{OFFSETS_TOPIC}-0", broker_id=number)
    ]

    groups = internal_frame(spark, rows).transform(decide_groups(group_record_rules((4, 3))))

    ours = defaultdict(list)
    for row in groups.where("group_type IS NOT NULL").collect():
        found = {"group": row["group_id"], "state": row["group_state"], "members": row["members"]}
        ours[RELEASES[row["broker_id"]]].append(found)
    for release in RELEASES:
        answers = json.loads((older / release / "answers.json").read_text())
        assert comparable(ours[release]) == comparable(answers["groups"]), release
        assert "Stable" in {row["state"] for row in ours[release]}


@pytest.mark.parametrize(("releases", "loads"), LOADING)
def test_a_partition_loads_if_a_broker_of_the_release_served_its_commits(
    spark: SparkSession, older: Path, releases: tuple[str, ...], loads: tuple[str, ...]
) -> None:
    rows = [
        row
        for number, release in enumerate(releases)
        for log in (older / release / "spoiled").iterdir()
        for row in rows_of_log(log, broker_id=number)
    ]
    is_new = NEWEST in releases
    rules = group_record_rules(parse_version(releases[-1]), is_new_coordinator=is_new)

    found = internal_frame(spark, rows).transform(decide_groups(rules))

    ours = {
        (releases[row["broker_id"]], row["partition"]): row["load"]
        for row in found.where("group_id IS NULL").collect()
    }
    for release in releases:
        told = json.loads((older / release / "served.json").read_text())
        assert tuple(ours[release, number] for number in range(len(CASES))) == loads
        served = [["t-0=" in answer for answer in answers] for answers in told["served"]]
        assert served == [[load != FAILS] * 2 for load in loads]
        errors = [line for line in told["logged"] if re.search("rror loading|ailed to load", line)]
        failed = [
            any(re.search(rf"{OFFSETS_TOPIC}-{number}\b", line) for line in errors)
            for number in range(len(CASES))
        ]
        assert failed == [load == FAILS for load in loads]
