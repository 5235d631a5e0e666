"""Copies of one log in memory, and what happens to a copy: for tests of ``divergence``.

A log is a list of batches with records of its own. Nothing but ``compared`` comes from the package.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kafka_segments.kafka.index.segment import offset_ranges
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.verbs.copies.divergence.decide.copies import (
    Copy,
    CopyPiece,
    Divergence,
    HeldEpoch,
)
from kafka_segments.verbs.copies.divergence.decide.joined_ranges import Part, ranges_of
from kafka_segments.verbs.copies.divergence.decide.logs import compare_log
from kafka_segments.verbs.copies.divergence.log_reading.keyed_records import KeyedLogs
from kafka_segments.verbs.copies.divergence.log_reading.log_files import (
    CopyFiles,
    Open,
    WholeSegment,
)
from kafka_segments.verbs.copies.divergence.log_reading.segment_ranges import (
    SegmentRangeReader,
    SegmentRanges,
)
from kafka_segments.verbs.copies.divergence.log_reading.sound_batches import Stretch
from support.logs.log_reading import reader_of
from support.logs.sound_logs import LZ4, ZSTD, compressed
from support.logs.strategies import (
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    v1_message,
    v2_batch,
    v2_record,
)

CLOCK_MS = 1_700_000_000_000
BASE_OFFSET_AT, EPOCH_AT, CRC_AT, COVERED_AT = 0, 12, 17, 21
_RECORDS_AT = 61


@dataclass(frozen=True)
class Batch:
    """A batch before it is written: (offset, key, value) of its records.

    With a producer it is of a transaction, or idempotent where ``is_transactional`` is False; with
    ``is_commit`` it is the marker that ends one. ``stamps`` are the timestamps of single records,
    as (offset, ms); the others have ``clock_ms``. ``append_ms`` is a LogAppendTime, ``horizon_ms``
    a delete horizon, ``max_ms`` a greatest timestamp other than that of the records. ``flags`` are
    added to the attributes, ``magic`` 1 gives messages v1.
    """

    base: int
    last: int
    epoch: int
    records: tuple[tuple[int, bytes | None, bytes | None], ...]
    codec: int = 0
    producer_id: int | None = None
    is_commit: bool | None = None
    is_transactional: bool = True
    is_control: bool | None = None
    producer_epoch: int = 0
    sequence: int = -1
    clock_ms: int = CLOCK_MS
    stamps: tuple[tuple[int, int], ...] = ()
    append_ms: int | None = None
    horizon_ms: int | None = None
    max_ms: int | None = None
    flags: int = 0
    magic: int = 2

    def written(self) -> bytes:
        return _written(self)

    def stamped(self) -> list[tuple[int, int, bytes | None, bytes | None]]:
        """Give offset, timestamp, key and value of each record."""
        if self.is_commit is not None:
            key, value = struct.pack(">hh", 0, self.is_commit), struct.pack(">hi", 0, 0)
            return [(self.base, self.clock_ms, key, value)]
        own = dict(self.stamps)
        return [
            (offset, own.get(offset, self.clock_ms), key, value)
            for offset, key, value in self.records
        ]

    @property
    def attributes(self) -> int:
        """The bits above the codec."""
        is_control = self.is_commit is not None if self.is_control is None else self.is_control
        is_transactional = self.producer_id is not None and self.is_transactional
        return (
            self.flags
            | CONTROL * is_control
            | TRANSACTIONAL * is_transactional
            | LOG_APPEND_TIME * (self.append_ms is not None)
            | DELETE_HORIZON * (self.horizon_ms is not None)
        )


@cache
def _written(batch: Batch) -> bytes:
    records = batch.stamped()
    if batch.magic == 1:
        return b"".join(v1_message(offset, ms, key, value) for offset, ms, key, value in records)
    first = batch.horizon_ms
    if first is None:
        first = records[0][1] if records else NO_TIMESTAMP
    payload = b"".join(
        v2_record(
            timestamp_delta=ms - first, offset_delta=offset - batch.base, key=key, value=value
        )
        for offset, ms, key, value in records
    )
    most = max((ms for _, ms, _, _ in records), default=batch.clock_ms)
    most = most if batch.max_ms is None else batch.max_ms
    return v2_batch(
        batch.base,
        [(ms, key, value) for _, ms, key, value in records],
        offset_deltas=[offset - batch.base for offset, _, _, _ in records],
        last_offset_delta=batch.last - batch.base,
        max_timestamp=most if batch.append_ms is None else batch.append_ms,
        base_timestamp=first,
        leader_epoch=batch.epoch,
        codec=batch.codec,
        payload=compressed(payload, batch.codec),
        flags=batch.attributes,
        producer_id=-1 if batch.producer_id is None else batch.producer_id,
        producer_epoch=-1 if batch.producer_id is None else batch.producer_epoch,
        base_sequence=batch.sequence,
    )


@dataclass
class LogCopy:
    """One copy: its segments as (base offset, batches as bytes), and what checkpoints say."""

    segments: list[tuple[int, list[bytes]]]
    log_start: int = 0
    high_watermark: int | None = None
    epochs: tuple[tuple[int, int], ...] = ()
    cleaner_offset: int | None = None
    has_cleaner_checkpoint: bool = False
    files: dict[int, bytes] = field(default_factory=dict)

    def file(self, index: int) -> bytes:
        base, batches = self.segments[index]
        return self.files.get(base, b"".join(batches))

    def spoil(self, index: int, data: bytes) -> None:
        """Put other bytes in the place of a segment's."""
        self.files[self.segments[index][0]] = data


def drawn_log(rng: random.Random, batches: int = 60, keys: int = 6) -> list[Batch]:
    """Draw a log without gaps, of one leader epoch after another."""
    offset = rng.choice([0, 0, 5000, 2**40])
    epoch = rng.choice([0, 3])
    found = []
    for _ in range(batches):
        epoch += rng.random() < 0.05
        count = rng.choice([1, 2, 3, 7, 200])
        records = tuple(
            (offset + delta, b"k%d" % rng.randrange(keys), rng.randbytes(rng.randrange(30)))
            for delta in range(count)
        )
        codec = rng.choice([0, 0, GZIP, LZ4])
        found.append(Batch(offset, offset + count - 1, epoch, records, codec))
        offset += count
    return found


def drawn_transactions(rng: random.Random, batches: int = 60) -> list[Batch]:
    """Draw a log of producers with transactions, some of which stay open, and of one without."""
    offset, epoch = rng.choice([0, 8192, 2**40]), 0
    found: list[Batch] = []
    opened: set[int] = set()
    for _ in range(batches):
        epoch += rng.random() < 0.05
        producer = rng.choice([None, 7, 8, 2**40])
        if producer in opened and rng.random() < 0.4:
            opened.remove(producer)
            found.append(
                Batch(offset, offset, epoch, (), 0, producer, is_commit=rng.random() < 0.5)
            )
        else:
            records = tuple((offset + at, b"k", b"v") for at in range(rng.randint(1, 4)))
            codec = rng.choice([0, LZ4])
            found.append(Batch(offset, offset + len(records) - 1, epoch, records, codec, producer))
            opened |= {producer} - {None}
        offset = found[-1].last + 1
    return found


def drawn_fields(rng: random.Random, style: str, batches: int = 60) -> list[Batch]:
    """Draw a log whose batches have producers, sequences and times.

    ``style``: idempotent, append (LogAppendTime), markers (transactions, each with its marker
    behind), emptied (by the cleaner, which keeps a producer's last batch).
    """
    sequences: dict[int, int] = {}
    found: list[Batch] = []
    for number, batch in enumerate(drawn_log(rng, batches)):
        producer = rng.choice([7, 8])
        sequence = sequences.get(producer, 0)
        sequences[producer] = sequence + batch.last - batch.base + 1
        one = replace(
            batch,
            producer_id=producer,
            is_transactional=style == "markers",
            sequence=sequence,
            clock_ms=CLOCK_MS + 1_000 * number,
            append_ms=CLOCK_MS + 1_000 * number + 3 if style == "append" else None,
        )
        if style == "emptied" and number % 4 == 1:
            one = replace(one, records=(), codec=0)
        if style == "markers" and number % 4 == 3 and found:
            one = replace(one, records=(), codec=0, sequence=-1, is_commit=rng.random() < 0.5)
            one = replace(one, last=one.base)
        found.append(one)
    return without_gaps(found) if style == "markers" else found


def without_gaps(batches: list[Batch]) -> list[Batch]:
    """Move batches back so that each begins where the one in front of it ends."""
    offset, found = batches[0].base, []
    for one in batches:
        by = offset - one.base
        records = tuple((at + by, key, value) for at, key, value in one.records)
        found.append(replace(one, base=one.base + by, last=one.last + by, records=records))
        offset = found[-1].last + 1
    return found


def epochs_of(batches: list[Batch]) -> tuple[tuple[int, int], ...]:
    """Give the leader epoch checkpoint of batches."""
    starts: dict[int, int] = {}
    for batch in batches:
        starts.setdefault(batch.epoch, batch.base)
    return tuple(sorted(starts.items()))


def cut_epochs(epochs: tuple[tuple[int, int], ...], start: int) -> tuple[tuple[int, int], ...]:
    """Give a leader epoch checkpoint as it is once the log start has moved."""
    gone = [epoch for epoch, first in epochs if first <= start]
    return (*((epoch, start) for epoch in gone[-1:]), *epochs[len(gone) :])


def rolled(
    rng: random.Random, batches: list[Batch], *, base: int | None = None, has_epochs: bool = True
) -> LogCopy:
    """Write batches into segments, rolled at drawn places; the first one's name can be ``base``."""
    segments: list[tuple[int, list[bytes]]] = [] if base is None else [(base, [])]
    for batch in batches:
        if not segments or (rng.random() < 0.12 and segments[-1][0] != batch.base):
            segments.append((batch.base, []))
        segments[-1][1].append(batch.written())
    return LogCopy(segments, segments[0][0], epochs=epochs_of(batches) if has_epochs else ())


def without(rng: random.Random, batches: list[Batch], first: int, behind: int) -> LogCopy:
    """Lose a segment: the one that held these batches."""
    front, back = rolled(rng, batches[:first]), rolled(rng, batches[behind:])
    segments = [*front.segments, *back.segments]
    return LogCopy(segments, front.log_start, epochs=epochs_of(batches))


class Hole(NamedTuple):
    """A copy that lacks something inside a segment, or a segment, and the offsets that it lacks.

    Of a record, ``base`` to before ``until`` are those of its batch.
    """

    copy: LogCopy
    base: int
    until: int


HOLES = ("batch", "record", "marker", "segment")
"""What a copy can lack."""


def with_hole(rng: random.Random, batches: list[Batch], what: str, *, least: int = 0) -> Hole:
    """Lose one of ``HOLES``, not below an offset; the log must have one."""
    by_base = {batch.base: batch for batch in batches}
    while True:
        copy = rolled(rng, batches)
        index = rng.randrange(len(copy.segments))
        base, held = copy.segments[index]
        if what == "segment":
            if base >= least and 0 < index < len(copy.segments) - 1:
                del copy.segments[index]
                return Hole(copy, base, copy.segments[index][0])
            continue
        at = rng.randrange(len(held))
        batch = by_base[base_of(held[at])]
        if 0 < at < len(held) - 1 and batch.base >= least and _can_lose(batch, what):
            held[at : at + 1] = [_thinner(rng, batch).written()] if what == "record" else []
            return Hole(copy, batch.base, batch.last + 1)


def _can_lose(batch: Batch, what: str) -> bool:
    if what == "record":
        return len(batch.records) > 1
    return (batch.is_commit is not None) == (what == "marker")


def _thinner(rng: random.Random, batch: Batch) -> Batch:
    gone = rng.choice(batch.records)
    return replace(batch, records=tuple(one for one in batch.records if one != gone))


def inserted(batches: list[Batch], at: int, count: int = 2) -> list[Batch]:
    """Put a batch of the same leader in front of one; those behind it move."""
    base = batches[at].base
    more = tuple((base + number, b"new", b"inserted") for number in range(count))
    moved = [
        replace(
            one,
            base=one.base + count,
            last=one.last + count,
            records=tuple((offset + count, key, value) for offset, key, value in one.records),
        )
        for one in batches[at:]
    ]
    new = Batch(base, base + count - 1, batches[at].epoch, more)
    return [*batches[:at], new, *moved]


def hurt(rng: random.Random, batches: list[Batch], number: int) -> LogCopy:
    """Flip a bit of one batch, which its checksum covers."""
    copy = rolled(rng, batches)
    written = batches[number].written()
    for index, (_, parts) in enumerate(copy.segments):
        if written in parts:
            at = sum(map(len, parts[: parts.index(written)]))
            place = at + rng.randrange(COVERED_AT, len(written))
            copy.spoil(index, flipped(copy.file(index), place))
    return copy


def recompressed(batches: list[Batch], codec: int = ZSTD) -> list[Batch]:
    """Write the same records in other bytes."""
    return [replace(batch, codec=codec if batch.codec != codec else GZIP) for batch in batches]


def compacted(batches: list[Batch], up_to: int) -> list[Batch]:
    """Keep the last record of each key, below an offset: as Kafka's cleaner writes it."""
    latest = {key: offset for batch in batches for offset, key, _ in batch.records}
    kept = []
    for batch in batches:
        if batch.last >= up_to:
            kept.append(batch)
            continue
        records = tuple(one for one in batch.records if latest[one[1]] == one[0])
        if records:
            kept.append(replace(batch, records=records))
    return kept


def forked(rng: random.Random, batches: list[Batch], at: int, *, more: int = 4) -> list[Batch]:
    """Cut a log at a batch, and let a leader of a new epoch write other records behind."""
    kept = batches[:at]
    epoch = batches[-1].epoch + 1
    offset = batches[at].base
    for _ in range(more):
        count = rng.randint(1, 9)
        records = tuple((offset + k, b"f", rng.randbytes(9)) for k in range(count))
        kept.append(Batch(offset, offset + count - 1, epoch, records))
        offset += count
    return kept


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    """Flip one bit."""
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


class ReadLog(NamedTuple):
    """Copies as a task is given them: what is known of each, what differs, and their files."""

    copies: list[Copy]
    ranges: list[dict[str, CopyPiece]]
    files: CopyFiles
    open_log: Open
    keys: KeyedLogs

    def batches(self) -> dict[str, list[CopyPiece]]:
        """Give the batches of each copy in the ranges."""
        held: dict[str, list[CopyPiece]] = {copy.name: [] for copy in self.copies}
        for found in self.ranges:
            for name, piece in found.items():
                held[name] += self.files.batches(name, piece)
        return held


def compared(
    copies: dict[str, LogCopy], *, range_bits: int = 5, by_keys: bool = False
) -> list[Divergence]:
    """Read the copies and compare them, as a task does."""
    read = read_log(copies, range_bits=range_bits)
    return compare_log(read.copies, read.ranges, read.files, read.keys, check_keys=by_keys)


def read_log(copies: dict[str, LogCopy], *, range_bits: int = 5) -> ReadLog:
    """Read the copies."""
    files = {
        f"{name}/{base:020d}.log": copy.file(index)
        for name, copy in copies.items()
        for index, (base, _) in enumerate(copy.segments)
    }
    parts: list[Part] = []
    whole: dict[str, list[WholeSegment]] = {name: [] for name in copies}
    described = []
    reader = SegmentRangeReader(range_bits=range_bits)
    for name, copy in copies.items():
        damages, end, thinned = [], copy.log_start, 0
        held: dict[int, list[int]] = {}
        bases = [base for base, _ in copy.segments]
        for index, base in enumerate(bases):
            following = bases[index + 1] if index + 1 < len(bases) else None
            path = f"{name}/{base:020d}.log"
            data = files[path]
            whole[name].append(WholeSegment(path, base, following, len(data)))
            limit = {} if following is None else {"limit": following, "is_last": False}
            found = reader.read(reader_of(data), Stretch(0, len(data), base, **limit))
            check_kept_digests(data, base, following, found, range_bits=range_bits)
            damages += [damage._replace(segment=path) for damage in found.damages]
            end = max(end, base)
            for column in found.columns.T.tolist():
                parts.append(Part(name, path, base, following, *column[: offset_ranges.THINNED]))
                end = max(end, column[offset_ranges.LAST_OFFSET] + 1)
                thinned += column[offset_ranges.THINNED]
                for epoch, at in (
                    (offset_ranges.FIRST_EPOCH, offset_ranges.BASE_OFFSET),
                    (offset_ranges.LAST_EPOCH, offset_ranges.LAST_OFFSET),
                ):
                    if column[epoch] >= 0:
                        held.setdefault(column[epoch], []).append(column[at])
        start = max(copy.log_start, bases[0] if bases else 0)
        described.append(
            Copy(
                name,
                start,
                end,
                copy.high_watermark,
                copy.epochs,
                copy.cleaner_offset,
                thinned,
                tuple(damages),
                held_epochs=tuple(
                    HeldEpoch(epoch, min(held[epoch]), max(held[epoch])) for epoch in sorted(held)
                ),
                is_start_noted=copy.high_watermark is None
                or copy.log_start > min(bases, default=0),
                has_cleaner_checkpoint=copy.has_cleaner_checkpoint,
            )
        )

    @contextmanager
    def open_log(path: str) -> Iterator[ReadInto]:
        yield reader_of(files[path])

    keys = KeyedLogs(whole, open_log=open_log)
    return ReadLog(described, ranges_of(parts), CopyFiles(open_log=open_log), open_log, keys)


def write_copy(folder: Path, copy: LogCopy) -> None:
    """Write the segments of a log into its folder."""
    folder.mkdir(parents=True)
    for index, (base, _) in enumerate(copy.segments):
        (folder / f"{base:020d}.log").write_bytes(copy.file(index))


def check_kept_digests(
    data: bytes, base: int, following: int | None, read: SegmentRanges, *, range_bits: int
) -> None:
    """Check that what a build keeps of a segment is what is read of it: nothing, if it is bad."""
    recoverer = _recoverer(range_bits)
    kept = recoverer.recover(reader_of(data), size_bytes=len(data), base_offset=base).offset_ranges
    if kept is None:
        return
    lasts = kept[offset_ranges.LAST_OFFSET]
    if following is None or not len(lasts) or lasts.max() < following:
        assert read.damages == ()
        assert np.array_equal(kept, read.columns)


@cache
def _recoverer(range_bits: int) -> SegmentRecoverer:
    return SegmentRecoverer(RecoveryOptions(digest_bits=range_bits))


def base_of(data: bytes) -> int:
    """Give the base offset that a batch says."""
    return int(struct.unpack_from(">q", data)[0])
