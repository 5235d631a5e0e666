"""What ``records`` prints."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from kafka_segments.console.lines import print_dicts, say
from kafka_segments.console.output import print_text, size_text, utc
from kafka_segments.verbs.find.records.decide import Unreadable, Why
from kafka_segments.verbs.find.records.large_batches import LargeBatch, LargestBatches
from kafka_segments.verbs.find.records.run import ReadRecords
from kafka_segments.verbs.find.records.segment_records import FoundRecord, SegmentScan

_MOST_SHOWN_CHARACTERS = 200
_UNTOLD = {
    Why.TORN.value: "a broker's recovery cuts it off",
    Why.ORDER.value: "a consumer passes over it without a word",
    Why.LENGTH.value: "a consumer gets the next segment instead, without a word, or waits there",
}


@dataclass
class _Log:
    """What was read of a log."""

    segments: int = 0
    records: int = 0
    first_offset: int | None = None
    next_offset: int | None = None
    unreadable: int = 0


@dataclass
class _Sum:
    """What was read of all; ``tell`` takes a line for each file that could not be read."""

    largest: LargestBatches
    tell: Callable[[str], None]
    found: int = 0
    shown: int = 0
    records: int = 0
    unreadable: int = 0
    problems: int = 0
    logs: dict[tuple[str, int], _Log] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordsForm:
    """How records are printed.

    Attributes:
        values: How keys and values are written: text, hex or json.
        most: How many records are printed at most.
        asks: Records were asked for; else what cannot be read, and the largest batches.
    """

    values: str
    most: int
    asks: bool


def print_records(read: ReadRecords, output: str, *, form: RecordsForm) -> int:
    """Print records as they are found; return how much could not be read.

    Args:
        read: what is read.
        output: table, json or csv.
        form: how they are printed.
    """
    total = _Sum(read.largest, say)
    rows = _rows(read.scans, total, form)
    if output == "table":
        for row in rows:
            print_text(_line(row))
    else:
        print_dicts(chain(rows, _read_rows(total)), output)
    if not form.asks:
        _say_limits(total.largest, read.limits_known_by)
    _say_proof(total, read.unread, asks=form.asks)
    return total.unreadable + total.problems + len(read.unread)


class RowsOfRecords(NamedTuple):
    """What is printed, as rows.

    Attributes:
        rows: Records that were asked for, or the largest batches; and what could not be read.
        read: What was read of each log.
        not_read: Files and folders that could not be read, and why.
        more: How many records that were found are not among the rows.
    """

    rows: list[dict[str, Any]]
    read: list[dict[str, Any]]
    not_read: list[str]
    more: int


def rows_of(read: ReadRecords, form: RecordsForm) -> RowsOfRecords:
    """Return the rows of all that is read, in the driver."""
    not_read = list(read.unread)
    total = _Sum(read.largest, not_read.append)
    rows = list(_rows(read.scans, total, form))
    return RowsOfRecords(rows, list(_read_rows(total)), not_read, total.found - total.shown)


def _rows(scans: Iterable[SegmentScan], total: _Sum, form: RecordsForm) -> Iterator[dict[str, Any]]:
    for scan in scans:
        _count(scan, total)
        yield from map(_unreadable_row, scan.unreadable)
        for record in scan.found if form.asks else ():
            if total.shown < form.most:
                total.shown += 1
                yield _record_row(record, form.values)
        if scan.problem is not None:
            total.tell(f"{scan.segment.path}: not read: {scan.problem}")
        if scan.missing is not None:
            total.tell(scan.missing)
    if not form.asks:
        yield from map(_large_row, total.largest.rows())


def _count(scan: SegmentScan, total: _Sum) -> None:
    segment = scan.segment
    log = total.logs.setdefault((segment.topic, segment.partition), _Log())
    log.segments += 1
    log.records += scan.records
    log.unreadable += len(scan.unreadable)
    first = log.first_offset
    log.first_offset = segment.base_offset if first is None else min(first, segment.base_offset)
    if scan.next_offset is not None:
        log.next_offset = max(log.next_offset or 0, scan.next_offset)
    total.found += scan.count
    total.records += scan.records
    total.unreadable += len(scan.unreadable)
    total.problems += (scan.problem is not None) + (scan.missing is not None)
    total.largest.take(scan.largest)


_COLUMNS = (
    *("row", "topic", "partition", "offset", "seek_to", "timestamp_ms", "key", "value", "headers"),
    *(
        "until_offset",
        "segments",
        "why",
        "reason",
        "client_error",
        "size_bytes",
        "records",
        "unreadable",
        "largest_record_bytes",
        "max_message_bytes",
    ),
    *("producer_id", "leader_epoch"),
    *("path", "position"),
)


def _row(kind: str, one: FoundRecord | Unreadable | LargeBatch, **values: Any) -> dict[str, Any]:
    """Return a row: all kinds have the same columns."""
    of_all = {
        "row": kind,
        "topic": one.topic,
        "partition": one.partition,
        "producer_id": one.producer_id,
        "path": one.path,
        "position": one.position,
    }
    return {**dict.fromkeys(_COLUMNS), **of_all, **values}


def _read_rows(total: _Sum) -> Iterator[dict[str, Any]]:
    """Yield what was read of each log, once all was."""
    for (topic, partition), log in total.logs.items():
        yield {
            **dict.fromkeys(_COLUMNS),
            "row": "read",
            "topic": topic,
            "partition": partition,
            "offset": log.first_offset,
            "until_offset": log.next_offset,
            "segments": log.segments,
            "records": log.records,
            "unreadable": log.unreadable,
        }


def _record_row(record: FoundRecord, form: str) -> dict[str, Any]:
    return _row(
        "record",
        record,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        key=_text(record.key, form),
        value=_text(record.value, form),
        headers=[[name, _text(value, form)] for name, value in record.headers],
        leader_epoch=record.leader_epoch,
    )


def _unreadable_row(one: Unreadable) -> dict[str, Any]:
    return _row(
        "unreadable",
        one,
        offset=one.base_offset,
        seek_to=one.seek_to,
        why=one.why.value,
        reason=one.reason,
        client_error=one.client_error,
        size_bytes=one.size_bytes,
    )


def _large_row(one: LargeBatch) -> dict[str, Any]:
    return _row(
        "large batch",
        one,
        offset=one.base_offset,
        size_bytes=one.size_bytes,
        records=one.records,
        largest_record_bytes=one.largest_record_bytes,
        max_message_bytes=one.limit_bytes,
    )


def _text(value: bytes | None, form: str) -> Any:
    """Return bytes as text, as hex, or as the JSON that they are; what is none stays text."""
    if value is None:
        return None
    if form == "hex":
        return value.hex()
    text = value.decode("utf-8", "backslashreplace")
    if form == "json":
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _line(row: dict[str, Any]) -> str:
    log = f"{row['topic']}-{row['partition']}"
    if row["row"] == "record":
        headers = f" headers {row['headers']}" if row["headers"] else ""
        return (
            f"{log} offset {row['offset']} {utc(row['timestamp_ms'])} key"
            f" {_short(row['key'])} value {_short(row['value'])}{headers}"
        )
    if row["row"] == "large batch":
        producer = f", producer {row['producer_id']}" if row["producer_id"] >= 0 else ""
        records, most = row["records"], row["largest_record_bytes"]
        counted = f", {records} records" if records >= 0 else ""
        largest = "" if most is None else f", the largest record {size_text(most)}"
        is_above = row["size_bytes"] > row["max_message_bytes"]
        above = f": above max.message.bytes, {row['max_message_bytes']}" if is_above else ""
        size = size_text(row["size_bytes"])
        return f"{log} offset {row['offset']}: a batch of {size}{counted}{largest}{producer}{above}"
    seek = (
        "nothing that can be read follows"
        if row["seek_to"] is None
        else f"seek to {row['seek_to']}"
    )
    told = row["client_error"] or _UNTOLD[row["why"]]
    return f"{log} offset {row['offset']}: {row['why']} ({row['reason']}): {seek}; {told}"


def _short(value: Any) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= _MOST_SHOWN_CHARACTERS else f"{text[:_MOST_SHOWN_CHARACTERS]}…"


def _say_limits(largest: LargestBatches, known_by: str) -> None:
    """Say how many batches are above max.message.bytes, and from where that is known."""
    for topic, count in sorted(largest.above.items()):
        limit = largest.limit_of(topic)
        say(f"{topic}: {count} batches are above max.message.bytes, {limit} ({known_by})")


def _say_proof(total: _Sum, unread: Sequence[str], *, asks: bool) -> None:
    """Say what was read: what an answer, and the absence of one, is worth."""
    for line in unread:
        say(line)
    if asks:
        more = f", the first {total.shown} are shown (--most)" if total.found > total.shown else ""
        say(f"{total.found} records found{more}")
    segments = sum(log.segments for log in total.logs.values())
    not_read = total.unreadable + total.problems + len(unread)
    but = f"; {not_read} parts could not be read: there the answer is not known" if not_read else ""
    say(f"read: {total.records} records in {segments} segments of {len(total.logs)} logs{but}")
