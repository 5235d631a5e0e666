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

from kafka_segments.divergence.decide.copies import Copy, CopyPiece, Divergence, HeldEpoch
from kafka_segments.divergence.decide.logs import compare_log
from kafka_segments.divergence.decide.parts import Part, ranges_of
from kafka_segments.divergence.keyed_records import KeyedLogs
from kafka_segments.divergence.log_files import CopyFiles, Open, WholeSegment
from kafka_segments.divergence.segment_ranges import SegmentRangeReader, SegmentRanges
from kafka_segments.divergence.sound_batches import Stretch
from kafka_segments.index import offset_ranges
from kafka_segments.index.recovery import SegmentRecoverer
from kafka_segments.index.recovery_options import RecoveryOptions
from kafka_segments.wire.reading import ReadInto
from log_reading import reader_of
from sound_logs import LZ4, ZSTD, compressed
from strategies import CONTROL, GZIP, TRANSACTIONAL, v2_batch, v2_record

CLOCK_MS = 1_700_000_000_000
BASE_OFFSET_AT, EPOCH_AT, CRC_AT, COVERED_AT = 0, 12, 17, 21
_RECORDS_AT = 61


@dataclass(frozen=True)
class Batch:
    """A batch before it is written: (offset, key, value) of its records.

    With a producer it is of a transaction, with ``is_commit`` the marker that ends one.
    """

    base: int
    last: int
    epoch: int
    records: tuple[tuple[int, bytes | None, bytes | None], ...]
    codec: int = 0
    producer_id: int | None = None
    is_commit: bool | None = None

    def written(self) -> bytes:
        return _written(self)


@cache
def _written(batch: Batch) -> bytes:
    producer = {}
    if batch.producer_id is not None:
        producer = {"producer_id": batch.producer_id, "producer_epoch": 0}
    if batch.is_commit is not None:
        key, value = struct.pack(">hh", 0, batch.is_commit), struct.pack(">hi", 0, 0)
        return v2_batch(
            batch.base,
            [(CLOCK_MS, key, value)],
            flags=CONTROL | TRANSACTIONAL,
            leader_epoch=batch.epoch,
            **producer,
        )
    payload = b"".join(
        v2_record(timestamp_delta=0, offset_delta=offset - batch.base, key=key, value=value)
        for offset, key, value in batch.records
    )
    return v2_batch(
        batch.base,
        [(CLOCK_MS, key, value) for _, key, value in batch.records],
        offset_deltas=[offset - batch.base for offset, _, _ in batch.records],
        last_offset_delta=batch.last - batch.base,
        max_timestamp=CLOCK_MS,
        base_timestamp=CLOCK_MS,
        leader_epoch=batch.epoch,
        codec=batch.codec,
        payload=compressed(payload, batch.codec),
        flags=TRANSACTIONAL if producer else 0,
        **producer,
    )


@dataclass
class LogCopy:
    """One copy: its segments as (base offset, batches as bytes), and what checkpoints say."""

    segments: list[tuple[int, list[bytes]]]
    log_start: int = 0
    high_watermark: int | None = None
    epochs: tuple[tuple[int, int], ...] = ()
    cleaner_offset: int | None = None
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
        if not segments or rng.random() < 0.12:
            segments.append((batch.base, []))
        segments[-1][1].append(batch.written())
    return LogCopy(segments, segments[0][0], epochs=epochs_of(batches) if has_epochs else ())


def without(rng: random.Random, batches: list[Batch], first: int, behind: int) -> LogCopy:
    """Lose a segment: the one that held these batches."""
    front, back = rolled(rng, batches[:first]), rolled(rng, batches[behind:])
    segments = [*front.segments, *back.segments]
    return LogCopy(segments, front.log_start, epochs=epochs_of(batches))


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
    return compare_log(read.copies, read.ranges, read.files, read.keys if by_keys else None)


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
                thinned > 0,
                tuple(damages),
                held_epochs=tuple(
                    HeldEpoch(epoch, min(held[epoch]), max(held[epoch])) for epoch in sorted(held)
                ),
                is_start_noted=copy.high_watermark is None
                or copy.log_start > min(bases, default=0),
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
