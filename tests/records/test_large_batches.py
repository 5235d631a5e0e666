"""The largest batches: whose they are, and which are above max.message.bytes."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kafka_segments.cli import cli
from kafka_segments.files.folders.walk import find_segments
from kafka_segments.verbs.find.records.large_batches import MAX_MESSAGE_BYTES
from kafka_segments.verbs.find.records.topic_limits import read_limits
from support.logs.strategies import v1_message, v2_batch

TIME = 1_700_000_000_000


def _records(*words: object) -> Result:
    return CliRunner().invoke(cli, ["records", *map(str, words)])


def _large(*words: object) -> list[dict[str, Any]]:
    rows = map(json.loads, _records(*words, "--output", "json").stdout.splitlines())
    return [row for row in rows if row["row"] == "large batch"]


def _write(folder: Path, log: str, base: int, *batches: bytes) -> None:
    path = folder / log / f"{base:020d}.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(batches))


def _batch(offset: int, size: int, producer_id: int = -1) -> bytes:
    records = [(TIME, b"k", bytes(size)), (TIME, b"k", b"")]
    return v2_batch(offset, records, producer_id=producer_id)


def test_of_each_topic_and_producer_the_largest_batch_is_told(tmp_path: Path) -> None:
    _write(tmp_path, "t-0", 0, _batch(0, 900, 7), _batch(2, 500, 7), _batch(4, 700, 8))
    _write(tmp_path, "t-1", 0, _batch(0, 950, 7), _batch(2, 10))
    _write(tmp_path, "u-0", 0, v1_message(0, TIME, b"k", bytes(300)))

    found = [(row["topic"], row["producer_id"], row["partition"]) for row in _large(tmp_path)]

    assert found == [("t", 7, 1), ("t", 8, 0), ("u", -1, 0), ("t", -1, 1)]
    assert [row["largest_record_bytes"] for row in _large(tmp_path)][:2] == [957, 707]
    assert [row["producer_id"] for row in _large(tmp_path, "--largest", 1)] == [7]


def test_batches_above_the_limit_are_counted(tmp_path: Path) -> None:
    over = MAX_MESSAGE_BYTES
    _write(tmp_path, "t-0", 0, _batch(0, over), _batch(2, 5), _batch(4, over, 9))

    done = _records(tmp_path)

    assert done.exit_code == 0
    assert "producer 9: above max.message.bytes, 1048588" in done.stdout
    told = f"t: 2 batches are above max.message.bytes, {over} (Kafka's default, {over}: no metadata"
    assert told in done.stderr


def test_limits_are_those_of_the_metadata_log_among_the_segments(node: Path) -> None:
    limits = read_limits(find_segments([str(node)]).segments)

    assert limits.known_by == f"{node}/a/__cluster_metadata-0, else {MAX_MESSAGE_BYTES}"
    assert limits.of_topic == {"orders": 2_000_000}


def test_a_metadata_log_that_cannot_be_understood_leaves_kafkas_default(node: Path) -> None:
    for file in (node / "a" / "__cluster_metadata-0").glob("*.checkpoint"):
        file.write_bytes(file.read_bytes()[:100] + bytes(50) + file.read_bytes()[150:])

    limits = read_limits(find_segments([str(node)]).segments)

    done = _records(node, "--topic", "orders")
    assert done.exit_code == 1
    assert "max.message.bytes of topics is not known: " in done.stderr
    assert limits.default == MAX_MESSAGE_BYTES
    assert limits.known_by.startswith(f"Kafka's default, {MAX_MESSAGE_BYTES}: ")
