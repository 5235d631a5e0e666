"""What lies on a cluster's disks, read by Kafka's classes and folded by ours."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kafka_segments.kafka.index.log.producer_state import ProducerState
from kafka_segments.kafka.index.log.snapshots import decode_snapshot
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.messages.records import INTERNAL_TOPICS, decode_internal
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.find.internals.metadata.history import HistoryRow, MetadataHistory, Point
from support.kafka.kafka_referee import Answer, Referee
from support.model.plain_decoder import PlainRecord, plain_records

NAMES = ("topics", "partitions", "configs", "brokers", "features", "entries")
_HELD = ("cluster", "from_offset", "from_ms", "until_offset", "until_ms", "is_from_snapshot")
_ATTRIBUTES_AT, _CONTROL = 21, 0x20
_TRANSACTION_STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort"),
    *("CompleteCommit", "CompleteAbort"),
)


def internal_files(disks: Path) -> Iterator[tuple[str, Path]]:
    """Give topic and path of every segment and snapshot of internal topics, in order."""
    for folder in sorted(disks.glob("node-*/*/__*-*")):
        topic = folder.name.rpartition("-")[0]
        for file in sorted(folder.iterdir()):
            if topic in INTERNAL_TOPICS and file.suffix in (".log", ".checkpoint"):
                yield topic, file


def kafka_lines(referee: Referee, topic: str, file: Path, scratch: Path) -> list[Answer]:
    """Let Kafka read every record of a file."""
    target = scratch / "records.jsonl"
    referee.internal_records(topic, file, target)
    return [json.loads(line) for line in target.read_text().splitlines()]


def kafka_images(
    referee: Referee,
    folder: Path,
    offsets: Iterable[int],
    scratch: Path,
    snapshot: str | None = None,
) -> list[dict[str, Any]]:
    """Let Kafka make the image as of each offset."""
    target = scratch / "images.jsonl"
    referee.metadata_images(folder, offsets, target, snapshot=snapshot)
    return [json.loads(line) for line in target.read_text().splitlines()]


def metadata_rows(folder: Path, snapshot: Path | None = None) -> tuple[list[HistoryRow], int]:
    """Fold the metadata log of a folder, behind a snapshot or from its beginning.

    Gives the rows and the last offset.
    """
    history = MetadataHistory()
    rows: list[HistoryRow] = []
    first = 0
    if snapshot is not None:
        first = int(snapshot.name.partition("-")[0])
        point = Point(first - 1, None, is_snapshot=True)
        for kind, value, _ in _values(snapshot):
            rows += history.replay(kind, value, point)
    last = first - 1
    for log in sorted(folder.glob("*.log")):
        for kind, value, record in _values(log):
            if record.offset >= first:
                rows += history.replay(kind, value, Point(record.offset, record.timestamp))
                last = record.offset
    return [*rows, *history.end()], last


def _values(file: Path) -> Iterator[tuple[str, dict[str, Any], PlainRecord]]:
    """Decode the records of a sound file that are no control records."""
    log = file.read_bytes()
    for record in plain_records(log):
        (attributes,) = struct.unpack_from(">h", log, record.batch_position + _ATTRIBUTES_AT)
        if not attributes & _CONTROL:
            found = decode_internal(METADATA_TOPIC, record.key, record.value)
            yield found.kind, json.loads(found.value_json() or "{}"), record


def producers_of(folder: Path) -> ProducerState:
    """Fold a log's producers, from the snapshot at its start where segments have been deleted."""
    logs = sorted(folder.glob("*.log"))
    start = logs[0].with_suffix(".snapshot")
    state = decode_snapshot(start.read_bytes()) if start.exists() else ProducerState()
    recoverer = SegmentRecoverer(RecoveryOptions())
    for log in logs:
        data = log.read_bytes()

        def read_into(position: int, view: memoryview, data: bytes = data) -> int:
            found = data[position : position + len(view)]
            view[: len(found)] = found
            return len(found)

        state.apply(recoverer.producers(read_into, size_bytes=len(data)))
    return state


def as_admin_describes(last: dict[str, Any]) -> dict[str, Any]:
    """Return the last record of a transactional id in the words of Admin's description."""
    start_ms = last["transactionStartTimestampMs"]
    return {
        "transactional_id": last["transactionalId"],
        "state": _TRANSACTION_STATES[last["transactionStatus"]],
        "producer_id": last["producerId"],
        "producer_epoch": last["producerEpoch"],
        "timeout_ms": last["transactionTimeoutMs"],
        "start_ms": None if start_ms < 0 else start_ms,
        "partitions": sorted(
            f"{topic['topic']}-{number}"
            for topic in last["transactionPartitions"] or ()
            for number in topic["partitionIds"]
        ),
    }


def comparable(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Write rows in one form: without the times at which they held, lists of structs sorted."""
    texts = []
    for row in rows:
        kept = {name: value for name, value in row.items() if name not in _HELD}
        if "kind" in kept and isinstance(kept["value"], str):
            kept["value"] = json.loads(kept["value"])
        for name in {"features", "endpoints"} & kept.keys():
            kept[name] = sorted(kept[name], key=lambda one: one["name"])
        texts.append(json.dumps(kept, sort_keys=True))
    return sorted(texts)


def assert_equal_image(rows: Iterable[HistoryRow], image: dict[str, Any]) -> None:
    """Compare what held at an image's offset with the image, table by table."""
    offset = image["offset"]
    held = [
        row
        for row in rows
        if row.since.offset <= offset and (row.until is None or offset < row.until.offset)
    ]
    for name in NAMES:
        ours = [row.values for row in held if row.table == f"metadata_{name}"]
        assert comparable(ours) == comparable(image[name]), (name, offset)
