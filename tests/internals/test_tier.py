"""The verb on a tier of its own: what was announced against objects, headers and local logs."""

import base64
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import kafka_segments
from kafka_segments.cli import cli
from kafka_segments.engine.tables.catalog import (
    INTERNAL_RECORDS,
    LOGS,
    METADATA_CONFIGS,
    METADATA_PARTITIONS,
    METADATA_TOPICS,
    SEGMENTS,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.durable_files import temporary_name
from kafka_segments.kafka.messages.records import REMOTE_LOG_TOPIC, decode_internal
from kafka_segments.verbs.find.internals.tier.tasks import list_objects
from support.kafka.kafka_referee import Referee
from support.logs import remote_records as made
from support.logs.remote_records import COPIED, DELETED, DELETING
from support.logs.strategies import v2_batch
from support.spark.filled_tables import fill
from support.stores.tiered_objects import OTHER_ID, TOPIC_ID, put_log, put_segment

pytestmark = pytest.mark.spark

NOW_MS = 1_800_000_000_000
LATELY_MS = NOW_MS - 1_000
TOPIC, LOG = "ct-none", "ct-none-0"
ENDS = (1596, 3147, 3452)
STARTS = (0, 1597, 3148)
EPOCHS = [{"epoch": 0, "start_offset": 0}, {"epoch": 1, "start_offset": 3148}]


def _run(*arguments: object) -> Any:
    done = CliRunner().invoke(cli, ["internals", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code in (0, 1), done.stderr
    return done


def _ids(number: int) -> str:
    return made.segment_id(6 + number)


def _as_read(records: Sequence[bytes]) -> list[dict[str, Any]]:
    """Give the rows that `internals` makes of records."""
    rows = []
    for offset, value in enumerate(records):
        found = decode_internal(REMOTE_LOG_TOPIC, None, value)
        said = {"kind": found.kind, "value_json": found.value_json(), "is_tombstone": False}
        place = {"topic": REMOTE_LOG_TOPIC, "file": "0.log", "row": offset, "offset": offset}
        rows.append({"cluster": "c", **place, **said})
    return rows


def _rename(root: Path, old: str, new: str) -> None:
    for file in root.rglob(f"*{old}*"):
        if file.suffix == ".rsm-manifest":
            file.write_text(file.read_text().replace(old, new))
        file.rename(file.with_name(file.name.replace(old, new)))


@pytest.fixture(scope="module")
def tier(broker: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three segments of a log, one that nobody announced, and an upload without manifest."""
    root = tmp_path_factory.mktemp("tier") / "objects"
    put_log(root, broker, LOG, topic=TOPIC, partition=0)
    for number in range(len(STARTS)):
        _rename(root, f"-{number:021d}", _ids(number))  # ids of put_log are no 16 bytes
    data = v2_batch(9000, [(5, None, b"x")], leader_epoch=3)
    orphan = {"base_offset": 9000, "end_offset": 9000, "max_timestamp_ms": 5, "epochs": {3: 9000}}
    put_segment(root, data, {}, topic=TOPIC, partition=0, segment_id=OTHER_ID, **orphan)
    (root / f"{TOPIC}-{TOPIC_ID}" / "0" / f"{9001:020d}-{made.segment_id(9)}.log").write_bytes(data)
    return root


def _records(broker: Path) -> list[bytes]:
    sizes = [(broker / "logs" / LOG / f"{start:020d}.log").stat().st_size for start in STARTS]
    told = [json.loads(line) for line in (broker / "recovered.jsonl").read_text().splitlines()]
    largest = [found["largestTimestamp"] for found in told if found["dir"] == LOG]
    log: dict[str, Any] = {"topic": TOPIC}

    def copied(number: int, **other: Any) -> list[bytes]:
        said = {"size": sizes[number], "max_ms": largest[number], **log, **other}
        start, end = STARTS[number], ENDS[number]
        return [
            made.added(_ids(number), start, end, **said),
            made.updated(_ids(number), COPIED, **log),
        ]

    return [
        *copied(0),
        *copied(1, size=sizes[1] + 1, epochs=[(0, 1597), (7, 1600)]),
        *copied(2),
        made.updated(_ids(2), DELETING, **log),
        made.updated(_ids(2), DELETED, **log),
        made.added(1, 100, 200, **log),
        made.updated(1, COPIED, **log),
        made.added(2, 3148, 3200, **log),
        made.added(3, 3148, 3200, ms=LATELY_MS, **log),
        made.added(4, 0, 50, **log),
        made.updated(4, COPIED, **log),
        made.updated(4, DELETING, **log),
        made.updated(4, COPIED, **log),
        made.updated(5, COPIED, **log),
    ]


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, broker: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was announced, and the local log, in tables."""
    root = tmp_path_factory.mktemp("tier") / "warehouse"
    tables = Warehouse(spark, str(root))
    log = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "topic": TOPIC}
    segments = [
        {
            **{**log, "base_offset": start, "next_offset": end + 1},
            **{"path": f"/d/{LOG}/{start:020d}.log", "largest_timestamp_source": "record"},
        }
        for start, end in zip(STARTS, ENDS, strict=True)
    ]
    fill(tables, INTERNAL_RECORDS, _as_read(_records(broker)))
    fill(tables, SEGMENTS, segments)
    named = {REMOTE_LOG_TOPIC: REMOTE_LOG_TOPIC, TOPIC: TOPIC_ID}
    of_node = {"cluster": "c", "replicas": [1], "isr": [1], "leader": 1}
    fill(
        tables,
        METADATA_PARTITIONS,
        [{**of_node, "topic": topic, "topic_id": topic_id} for topic, topic_id in named.items()],
    )
    fill(tables, LOGS, [{**log, "folder_state": "live", "leader_epochs": EPOCHS}])
    return root


def _found(done: Any) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["segment_id"]: row for row in rows}


@pytest.mark.slow
@pytest.mark.usefixtures("asked_few_and_many")
def test_each_segment_has_its_state_and_what_is_wrong_with_it(
    spark: SparkSession, warehouse: Path, tier: Path
) -> None:
    options = ("--warehouse", warehouse, "--now-ms", NOW_MS)

    done = _run("tier", "--source", tier, *options, "--output", "json")

    assert done.exit_code == 1
    rows = _found(done)
    assert {name: (row["state"], row["findings"]) for name, row in rows.items()} == {
        _ids(0): ("COPY_SEGMENT_FINISHED", []),
        _ids(1): ("COPY_SEGMENT_FINISHED", ["disagrees", "lost_leadership"]),
        _ids(2): ("DELETE_SEGMENT_FINISHED", ["orphan"]),
        OTHER_ID: (None, ["orphan"]),
        made.segment_id(1): ("COPY_SEGMENT_FINISHED", ["missing"]),
        made.segment_id(2): ("COPY_SEGMENT_STARTED", ["copy_unfinished"]),
        made.segment_id(3): ("COPY_SEGMENT_STARTED", []),
        made.segment_id(4): (
            "DELETE_SEGMENT_STARTED",
            ["delete_unfinished", "refused_updates"],
        ),
        made.segment_id(5): (None, ["refused_updates"]),
        made.segment_id(9): (None, ["orphan"]),
    }
    assert rows[OTHER_ID]["start_offset"] == rows[OTHER_ID]["end_offset"] == 9000
    assert rows[OTHER_ID]["objects"] == 3
    assert rows[_ids(1)]["detail"].startswith("bytes ")
    assert 'leader epochs [{"epoch":0,"start_offset":1597},{"epoch":7' in rows[_ids(1)]["detail"]
    assert rows[made.segment_id(9)]["detail"] == "no .indexes; no .rsm-manifest"
    assert rows[made.segment_id(4)]["detail"] == "1 updates that Kafka refuses"
    size = sum(file.stat().st_size for file in tier.rglob(f"*{OTHER_ID}*"))
    assert rows[OTHER_ID]["stored_bytes"] == size
    assert "orphan: 3 segments" in done.stderr


@pytest.mark.slow
def test_a_person_reads_of_what_is_wrong_alone(warehouse: Path, tier: Path) -> None:
    options = ("--warehouse", warehouse, "--now-ms", NOW_MS)

    shown = _run("tier", "--source", tier, *options, "--dry-run")

    assert shown.exit_code == 1
    assert _ids(0) not in shown.stdout
    assert "orphan" in shown.stdout


@pytest.mark.slow
def test_without_a_tier_nothing_is_said_of_objects(warehouse: Path) -> None:
    options = ("--warehouse", warehouse, "--now-ms", NOW_MS, "--dry-run")

    done = _run("tier", *options, "--output", "json")

    rows = _found(done)
    assert rows[made.segment_id(1)]["findings"] == []
    assert rows[made.segment_id(1)]["objects"] is None
    assert OTHER_ID not in rows


@pytest.mark.long
def test_of_a_tier_that_is_not_mounted_nothing_is_missing(warehouse: Path, tmp_path: Path) -> None:
    options = ("--warehouse", warehouse, "--now-ms", NOW_MS, "--dry-run", "--output", "json")

    done = _run("tier", "--source", tmp_path, *options)

    findings = {name: row["findings"] for name, row in _found(done).items()}
    assert findings[made.segment_id(1)] == ["not_found"]
    assert findings[_ids(0)] == ["not_found"]
    assert f"not known: {tmp_path} holds no object" in done.stderr


@pytest.mark.long
def test_an_empty_source_is_told_beside_a_tier_whose_name_begins_alike(
    warehouse: Path, tier: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "tier"
    empty.mkdir()
    shutil.copytree(tier, tmp_path / "tier-2")
    options = ("--warehouse", warehouse, "--now-ms", NOW_MS, "--dry-run")

    done = _run("tier", "--source", empty, "--source", tmp_path / "tier-2", *options)

    assert f"not known: {empty} holds no object" in done.stderr
    assert "tier-2 holds no object" not in done.stderr
    assert done.exit_code == 1


@pytest.mark.slow
@pytest.mark.usefixtures("asked_few_and_many")
def test_local_offsets_that_no_copy_has(warehouse: Path, tier: Path) -> None:
    options = ("--warehouse", warehouse, "--now-ms", NOW_MS, "--output", "json", "--dry-run")

    done = _run("tier", "--source", tier, *options, "--not-copied")

    assert done.exit_code == 0
    (gap,) = [json.loads(line) for line in done.stdout.splitlines()]
    told = {"copies": 1, "from_offset": ENDS[0] + 1, "to_offset": ENDS[2]}
    assert gap == {"cluster": "c", "topic": TOPIC, "partition": 0, **told}


@pytest.mark.long
@pytest.mark.usefixtures("few")
def test_a_notebook_gets_the_rows_of_the_command(
    spark: SparkSession, warehouse: Path, tier: Path, tmp_path: Path
) -> None:
    shutil.copytree(warehouse, tmp_path / "warehouse")
    options = ("--warehouse", warehouse, "--now-ms", NOW_MS, "--output", "json", "--dry-run")
    told = _found(_run("tier", "--source", tier, *options))

    with kafka_segments.open(tmp_path / "warehouse", spark) as opened:
        asked = opened.internals
        dry = asked.tier(sources=str(tier), now=NOW_MS).collect()
        asked.tier(sources=[str(tier)], now=NOW_MS, check="names", topics=TOPIC, save=True)
        saved = {row["segment_id"]: row["findings"] for row in asked.remote_segments.collect()}
        (gap,) = asked.not_copied(sources=str(tier)).collect()
        with pytest.raises(UsageError, match="check 'all': one of names, manifests, headers"):
            asked.tier(check="all")

    assert {row["segment_id"]: row["findings"] for row in dry} == {
        name: row["findings"] for name, row in told.items()
    }
    assert saved.keys() == told.keys()
    assert saved[_ids(1)] == ["lost_leadership"]
    assert (gap["copies"], gap["from_offset"], gap["to_offset"]) == (1, ENDS[0] + 1, ENDS[2])


@pytest.mark.slow
def test_a_tiered_topic_of_which_nothing_was_announced_is_not_copied(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Warehouse(spark, str(tmp_path))
    fill(tables, INTERNAL_RECORDS, _as_read([made.added(1, 0, 9)]))
    logs = [
        {"cluster": cluster, "broker_id": 1, "log_dir": "/d", "topic": topic, "next_offset": 10}
        for cluster, topic in (("c", "never"), ("c", "once"), ("c", "plain"), ("d", "never"))
    ]
    of_file = {"path": f"/d/{0:020d}.log", "largest_timestamp_source": "record"}
    fill(tables, SEGMENTS, [{**log, **of_file} for log in logs])
    fill(tables, LOGS, [{**log, "folder_state": "live"} for log in logs])
    said = [("never", "true", None), ("once", "true", 9), ("plain", "false", None)]
    configs = [
        {
            **{"cluster": cluster, "resource_type": "topic", "resource_name": topic},
            **{"name": "remote.storage.enable", "value": value, "until_offset": until},
        }
        for cluster in ("c", "d")
        for topic, value, until in said
    ]
    fill(tables, METADATA_CONFIGS, configs)

    for options in ((), ("--topic", "never")):
        done = _run("tier", "--warehouse", tmp_path, "--not-copied", "--dry-run", *options)

        (row,) = done.stdout.splitlines()[1:]
        assert row.split() == ["never-0", "0", "0", "9"]


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_logs_that_are_not_a_leaders_or_not_there_say_nothing_of_copies(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Warehouse(spark, str(tmp_path))
    copy = made.added(1, 0, 79, topic=TOPIC, epochs=[(0, 0), (1, 50)])
    fill(tables, INTERNAL_RECORDS, _as_read([copy, made.updated(1, COPIED, topic=TOPIC)]))
    log = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "topic": TOPIC, "partition": 0}
    of_file = {"path": f"/d/{0:020d}.log", "largest_timestamp_source": "record"}
    fill(tables, SEGMENTS, [{**log, **of_file, "next_offset": 80}])
    fill(tables, LOGS, [{**log, "folder_state": "live", "leader_epochs": EPOCHS[:1]}])
    named = [(TOPIC, TOPIC_ID), ("not-there", OTHER_ID), ("plain", OTHER_ID)]
    partitions = [
        {
            **{"cluster": "c", "topic": topic, "partition": 0, "topic_id": topic_id, "leader": 2},
            **{"replicas": [1, 2], "isr": [2], "elr": []},
        }
        for topic, topic_id in named
    ]
    fill(tables, METADATA_PARTITIONS, partitions)
    tiered = {"resource_type": "topic", "name": "remote.storage.enable", "value": "true"}
    fill(tables, METADATA_CONFIGS, [{"cluster": "c", "resource_name": "not-there", **tiered}])

    done = _run("tier", "--warehouse", tmp_path, "--not-copied", "--dry-run")

    assert f"{LOG}: not known: of the brokers that the metadata has in sync (2)" in done.stderr
    assert "not-there-0: not known: no log of it was read" in done.stderr
    assert "plain" not in done.stderr
    assert (done.exit_code, done.stdout.splitlines()[1:]) == (1, [])


@pytest.mark.usefixtures("few")
def test_headers_tell_what_names_and_manifests_do(spark: SparkSession, tier: Path) -> None:
    folder = [(str(tier), f"{TOPIC}-{TOPIC_ID}/0", TOPIC, 0, TOPIC_ID)]
    columns = "source string, relative_path string, topic string, partition int, topic_id string"
    frame = spark.createDataFrame(folder, columns)

    found = {
        check: {row["segment_id"]: row for row in list_objects(frame, check=check).collect()}
        for check in ("names", "manifests", "headers")
    }

    names, manifests, headers = (found[check][_ids(1)]["found"] for check in found)
    assert (names["start_offset"], names["end_offset"], names["size_bytes"]) == (1597, None, None)
    same = ("start_offset", "end_offset", "max_timestamp_ms", "size_bytes")
    assert [headers[name] for name in same] == [manifests[name] for name in same]
    assert headers["leader_epochs"] == [(0, 1597)]
    assert headers["event_ms"] == manifests["event_ms"] == 1_700_000_000_000
    assert found["headers"][made.segment_id(9)]["found"]["leader_epochs"] is None


@pytest.mark.slow
@pytest.mark.usefixtures("asked_few_and_many")
def test_a_raw_tier_is_rebuilt_from_headers_alone(
    spark: SparkSession, referee: Referee, broker: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "tier" / LOG
    folder.mkdir(parents=True)
    log = f"{1597:020d}"
    uuid = "12345678-9abc-4def-8123-456789abcdef"
    shutil.copy(broker / "logs" / LOG / f"{log}.log", folder / f"{log}-{uuid}.log")
    target = tmp_path / "records.jsonl"
    held = {"cluster": "c", "topic": TOPIC, "topic_id": TOPIC_ID}
    fill(Warehouse(spark, str(tmp_path / "warehouse")), METADATA_TOPICS, [held])
    options = ("--source", tmp_path / "tier", "--warehouse", tmp_path / "warehouse")

    left = Path(temporary_name(str(target)))  # of a run that was killed
    left.touch()
    os.utime(left, (5, 5))

    done = _run(
        "tier", *options, "--check", "headers", "--rebuild", target, "--metadata-partitions", 5
    )

    assert (done.exit_code, left.exists()) == (0, False)
    added, updated = _read_back(referee, target, partitions=5)
    assert updated["state"] == "COPY_SEGMENT_FINISHED"
    assert (added["start_offset"], added["end_offset"]) == (1597, 3147)
    assert added["size_bytes"] == (folder / f"{log}-{uuid}.log").stat().st_size
    assert added["leader_epochs"] == [[0, 1597]]
    assert added["broker_id"] == -1
    assert added["segment_id"] == "EjRWeJq8Te-BI0VniavN7w"


def _read_back(referee: Referee, target: Path, *, partitions: int) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    values = [base64.b64decode(line["value"]) for line in lines]
    records = referee.read_remote(values, partitions=partitions)
    for line, record in zip(lines, records, strict=True):
        assert line["partition"] == record["metadata_partition"]
        assert (line["topic"], line["key"]) == (REMOTE_LOG_TOPIC, None)
        assert line["state"] == record["state"]
    return records


@pytest.mark.slow
def test_lost_metadata_is_rebuilt_as_the_manifests_say(
    referee: Referee, broker: Path, tier: Path, tmp_path: Path
) -> None:
    target = tmp_path / "records.jsonl"
    empty = tmp_path / "warehouse"
    options = ("--source", tier, "--warehouse", empty, "--rebuild", target)

    dry = _run("tier", *options, "--metadata-partitions", 50, "--dry-run")
    assert not target.exists()
    done = _run("tier", *options, "--metadata-partitions", 50)

    assert done.exit_code == 1  # an upload without manifest
    assert dry.stdout == done.stdout
    assert "4 segments that no record claims, 8 records announce them; 1 whose" in done.stderr
    records = _read_back(referee, target, partitions=50)
    added = [record for record in records if "start_offset" in record]
    manifests = [
        json.loads(file.read_text())["remoteLogSegmentMetadata"]
        for file in sorted(tier.rglob("*.rsm-manifest"))
    ]
    assert [_as_announced(record) for record in added] == [
        (
            said["remoteLogSegmentId"]["id"],
            said["startOffset"],
            said["endOffset"],
            said["maxTimestampMs"],
            said["brokerId"],
            said["eventTimestampMs"],
            [[int(epoch), start] for epoch, start in said["segmentLeaderEpochs"].items()],
        )
        for said in manifests
    ]
    sizes = [(broker / "logs" / LOG / f"{at:020d}.log").stat().st_size for at in STARTS]
    assert [record["size_bytes"] for record in added][:3] == sizes
    states = [record["state"] for record in records]
    assert states == ["COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED"] * 4
    again = CliRunner().invoke(cli, ["internals", "tier", *map(str, options)])
    assert again.exit_code == 2
    assert "the file is there already" in again.stderr


def _as_announced(record: dict[str, Any]) -> tuple[Any, ...]:
    names = ("segment_id", "start_offset", "end_offset", "max_timestamp_ms", "broker_id")
    return (*(record[name] for name in names), record["state_ms"], record["leader_epochs"])


def test_what_cannot_be_asked_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    wrong = {
        "name its --source": ("--rebuild", tmp_path / "x"),
        "leave one out": ("--rebuild", tmp_path / "x", "--not-copied", "--source", tmp_path),
    }
    for message, options in wrong.items():
        arguments = ["internals", "tier", "--warehouse", tmp_path / "t", *options]
        done = CliRunner().invoke(cli, [str(argument) for argument in arguments])

        assert done.exit_code == 2
        assert message in done.stderr


def test_a_warehouse_without_records_of_the_tier_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    Warehouse(spark, str(tmp_path)).create(INTERNAL_RECORDS)

    done = CliRunner().invoke(cli, ["internals", "tier", "--warehouse", str(tmp_path)])

    assert done.exit_code == 2
    assert "has no records of __remote_log_metadata: run `kafka-segments internals" in done.stderr
