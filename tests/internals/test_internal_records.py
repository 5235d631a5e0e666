"""Records of internal topics as rows, read from files, without Spark."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS
from kafka_segments.kafka.text.names import METADATA_TOPIC, OFFSETS_TOPIC
from kafka_segments.verbs.find.internals.files import parse_snapshot_name
from kafka_segments.verbs.find.internals.record_columns import Decoded, decode_row
from kafka_segments.verbs.find.internals.tasks import InternalReader
from support.logs import metadata_logs as made

SCHEMA = to_arrow_schema(INTERNAL_RECORDS.schema)
RECORDS = [
    made.feature("metadata.version", 25),
    made.topic("orders", 7),
    made.partition(7, 0),
    made.config("orders", "retention.ms", "1000"),
    made.leader(7, 0, 2),
]


def _rows(path: Path, **file: Any) -> list[dict[str, Any]]:
    """Read a file of the metadata log."""
    given = {
        "cluster": "c",
        "broker_id": 1,
        "log_dir": str(path.parent.parent),
        "topic": METADATA_TOPIC,
        "partition": 0,
        "file": path.name,
        "path": str(path),
        "is_snapshot": path.suffix == ".checkpoint",
        "is_active": True,
        "base_offset": 0,
        "size_bytes": path.stat().st_size if path.exists() else 100,
        "mtime_ns": 1,
        **file,
    }
    batches = list(InternalReader(SCHEMA).file(given))
    assert all(batch.schema == SCHEMA for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def test_records_of_the_log_have_their_kind_and_their_values_as_kafkas_json(
    tmp_path: Path,
) -> None:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(made.log_bytes(RECORDS, base_offset=40, epoch=3))

    rows = _rows(path, base_offset=40)

    assert [(row["row"], row["offset"], row["leader_epoch"]) for row in rows] == [
        (number, 40 + number, 3) for number in range(5)
    ]
    assert [row["kind"] for row in rows] == [
        "FeatureLevelRecord",
        "TopicRecord",
        "PartitionRecord",
        "ConfigRecord",
        "PartitionChangeRecord",
    ]
    assert json.loads(rows[1]["value_json"]) == {"name": "orders", "topicId": made.uuid_text(7)}
    assert json.loads(rows[4]["value_json"])["leader"] == 2
    assert rows[0]["timestamp_ms"] == made.START_MS + 40_000
    for row in rows:
        assert (row["value_version"], row["is_tombstone"]) == (0, False)
        assert (row["key"], row["value"], row["key_json"], row["problem"]) == (None,) * 4


def test_a_snapshot_has_its_header_its_records_and_its_footer(tmp_path: Path) -> None:
    path = tmp_path / f"{9:020d}-{2:010d}.checkpoint"
    path.write_bytes(made.snapshot_bytes(RECORDS[:2], end_offset=9))

    rows = _rows(path, base_offset=9)

    assert [row["kind"] for row in rows] == [
        "SnapshotHeaderRecord",
        "FeatureLevelRecord",
        "TopicRecord",
        "SnapshotFooterRecord",
    ]
    header = json.loads(rows[0]["value_json"])
    assert header["lastContainedLogTimestamp"] == made.START_MS + 8_000
    assert all(row["is_snapshot"] and row["base_offset"] == 9 for row in rows)


@pytest.mark.parametrize("suffix", [".log", ".checkpoint"])
def test_what_is_cut_off_or_spoiled_is_a_row_and_what_is_before_it_is_read(
    tmp_path: Path, suffix: str
) -> None:
    data = bytearray(made.log_bytes(RECORDS))
    whole = len(made.log_bytes(RECORDS[:3]))
    cut, spoiled = tmp_path / f"cut{suffix}", tmp_path / f"spoiled{suffix}"
    cut.write_bytes(data[: whole + 70])
    data[whole + 65] ^= 1
    spoiled.write_bytes(data)

    for path, reason in ((cut, "are left in the file"), (spoiled, "checksum is 0x")):
        *before, last = _rows(path)
        assert [row["offset"] for row in before] == [0, 1, 2]
        assert (last["offset"], last["kind"], last["row"]) == (None, None, 3)
        assert reason in last["problem"]
        assert last["batch_position"] == whole


def test_a_file_that_is_gone_is_a_row(tmp_path: Path) -> None:
    (row,) = _rows(tmp_path / "gone.log")

    assert row["problem"] == "listed, but gone when it was to be read (at byte 0)"


def test_a_record_that_cannot_be_decoded_keeps_its_bytes_and_those_behind_it_are_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / f"{0:020d}.log"
    unknown, short = b"\x01\x7f\x00\x01", RECORDS[1][:-4]
    path.write_bytes(made.log_bytes([unknown, short, RECORDS[0]]))

    rows = _rows(path)

    assert [row["kind"] for row in rows] == ["unknown", "TopicRecord", "FeatureLevelRecord"]
    assert [row["value"] for row in rows] == [unknown, short, None]
    assert rows[0]["problem"] is None
    assert rows[1]["problem"] is not None
    assert rows[1]["value_json"] is None


def test_a_tombstone_has_its_key_and_no_value() -> None:
    key = b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x05"

    row = decode_row(OFFSETS_TOPIC, key, None, False, None)

    assert row._replace(key_json=None) == Decoded("OffsetCommit", 1, is_tombstone=True)
    assert json.loads(row.key_json or "") == {"group": "g", "topic": "t", "partition": 5}


def test_a_marker_is_no_tombstone() -> None:
    row = decode_row(OFFSETS_TOPIC, b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x05", True, None)

    assert (row.kind, row.is_tombstone, row.problem) == ("EndTxnMarker", False, None)
    assert json.loads(row.value_json or "") == {"coordinatorEpoch": 5}


@pytest.mark.parametrize(
    ("name", "end_offset"),
    [
        ("00000000000000000012-0000000003.checkpoint", 12),
        ("00000000000000000012-0000000003.checkpoint.part", None),
        ("00000000000000000012-0000000003.checkpoint.deleted", None),
        ("bootstrap.checkpoint", None),
        ("00000000000000000012.log", None),
    ],
)
def test_only_finished_snapshots_have_a_snapshots_name(name: str, end_offset: int | None) -> None:
    assert parse_snapshot_name(name) == end_offset
