"""What the batches of a segment add up to, compiled: timestamps, offsets, counts.

Every batch changes these. They are held in two tuples beside the ``walk``: the compiler keeps the
fields of a tuple in registers, where fields of ``walk`` would be loaded and stored for each batch.
"""

from typing import Any, NamedTuple

import numpy as np

from kafka_segments.compiling import njit
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.headers import least_timestamp

_MOST_MAGIC = 3  # any magic above 2 counts as this one


class Timestamps(NamedTuple):
    """The greatest and the least timestamp so far, in ms, and the offset of the greatest."""

    greatest: Any
    offset_of_greatest: Any
    least: Any


class Counts(NamedTuple):
    """How many batches and records there are so far, which formats, and where they end."""

    next_offset: Any
    producer_end_offset: Any
    batches: Any
    records: Any
    magic_bits: Any
    codec_bits: Any
    timestamp_type_bits: Any
    max_batch_bytes: Any


class RunSums(NamedTuple):
    """Where a run of alike batches ends; how many batches and records; codecs, largest batch."""

    next_offset: Any
    records: Any
    batches: Any
    codec_bits: Any
    max_batch_bytes: Any


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def timestamps_of(walk: Any) -> Any:
    """Return the timestamps that ``walk`` has."""
    return Timestamps(walk.max_timestamp, walk.offset_of_max_timestamp, walk.min_timestamp)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def store_timestamps(walk: Any, timestamps: Any) -> None:
    """Put timestamps into ``walk``."""
    walk.max_timestamp = timestamps.greatest
    walk.offset_of_max_timestamp = timestamps.offset_of_greatest
    walk.min_timestamp = timestamps.least


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def counts_of(walk: Any) -> Any:
    """Return the counts that ``walk`` has."""
    return Counts(
        walk.next_offset,
        walk.producer_end_offset,
        walk.batch_count,
        walk.record_count,
        walk.magic_bits,
        walk.codec_bits,
        walk.timestamp_type_bits,
        walk.max_batch_bytes,
    )


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def store_counts(walk: Any, counts: Any) -> None:
    """Put counts into ``walk``."""
    walk.next_offset = counts.next_offset
    walk.producer_end_offset = counts.producer_end_offset
    walk.batch_count = counts.batches
    walk.record_count = counts.records
    walk.magic_bits = counts.magic_bits
    walk.codec_bits = counts.codec_bits
    walk.timestamp_type_bits = counts.timestamp_type_bits
    walk.max_batch_bytes = counts.max_batch_bytes


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def measured(walk: Any, timestamps: Any, counts: Any, header: Any) -> Any:
    """Return the timestamps with those of one more batch; the first is noted in ``walk``."""
    if counts.batches == 0:
        walk.first_batch_timestamp = header.max_timestamp
        walk.has_bad_first_magic = header.magic < 0
    return with_timestamps_of(timestamps, header)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def with_timestamps_of(timestamps: Any, header: Any) -> Any:
    """Return the timestamps with those of one more batch."""
    greatest, offset_of_greatest, least = timestamps
    if header.max_timestamp > greatest:
        greatest, offset_of_greatest = header.max_timestamp, header.last_offset
    if header.max_timestamp >= 0:
        # unsigned, so that -1 for none is above all others
        least = np.int64(min(np.uint64(least), np.uint64(least_timestamp(header))))
    return Timestamps(greatest, offset_of_greatest, least)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def counted(walk: Any, counts: Any, header: Any, size_bytes: Any, reaches_producers: Any) -> Any:
    """Return the counts with one more batch; those of rare kinds are counted in ``walk``.

    ``reaches_producers``: the producer state has taken the batch, if it is of magic 2 or more.
    """
    next_offset = header.last_offset + 1
    producer_end_offset = counts.producer_end_offset
    records = header.record_count
    if header.magic >= layout.MAGIC_V2:
        if reaches_producers:
            producer_end_offset = next_offset
        if header.attributes & layout.CONTROL != 0:
            walk.control_batch_count += 1
        if header.attributes & layout.TRANSACTIONAL != 0:
            walk.transactional_batch_count += 1
    elif header.attributes & layout.CODEC_MASK != 0:
        records = np.int64(0)
        walk.uncounted_batch_count += 1
        walk.has_wrapper_at_end = 1
    timestamp_type = 1
    if header.magic == 0:
        timestamp_type = 0
    elif header.attributes & layout.LOG_APPEND_TIME != 0:
        timestamp_type = 2
    magic_bit = min(max(header.magic, -1), _MOST_MAGIC) + 1
    return Counts(
        next_offset,
        producer_end_offset,
        counts.batches + 1,
        counts.records + records,
        counts.magic_bits | 1 << magic_bit,
        counts.codec_bits | 1 << (header.attributes & layout.CODEC_MASK),
        counts.timestamp_type_bits | 1 << timestamp_type,
        max(counts.max_batch_bytes, size_bytes),
    )


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def sums_of(counts: Any) -> Any:
    """Return the sums of a run that has no batch yet and begins where ``counts`` end."""
    none = np.int64(0)
    return RunSums(counts.next_offset, none, none, counts.codec_bits, counts.max_batch_bytes)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def summed(sums: Any, header: Any, size_bytes: Any) -> Any:
    """Return the sums with one more batch of the run: what ``counted`` takes of it."""
    return RunSums(
        header.last_offset + 1,
        sums.records + header.record_count,
        sums.batches + 1,
        sums.codec_bits | 1 << (header.attributes & layout.CODEC_MASK),
        max(sums.max_batch_bytes, size_bytes),
    )


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def counted_run(walk: Any, counts: Any, sums: Any, magic: Any, attributes: Any) -> Any:
    """Return the counts with a run of batches, as ``counted`` with each of them.

    The batches are like the last one in ``counts``, which has noted their formats but for codecs.
    None of them is a control batch or a compressed message v0 or v1.
    """
    producer_end_offset = counts.producer_end_offset
    if magic >= layout.MAGIC_V2:
        producer_end_offset = sums.next_offset
        if attributes & layout.TRANSACTIONAL != 0:
            walk.transactional_batch_count += sums.batches
    return Counts(
        sums.next_offset,
        producer_end_offset,
        counts.batches + sums.batches,
        counts.records + sums.records,
        counts.magic_bits,
        sums.codec_bits,
        counts.timestamp_type_bits,
        sums.max_batch_bytes,
    )
