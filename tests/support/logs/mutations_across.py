"""Mutations of where batches and segments stand, of offsets, transactions, wrappers, settings."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from support.logs.mutation_case import (
    DAY_MS,
    Case,
    Mutation,
    fields_of,
    get,
    kind,
    kind_of,
    with_field,
)
from support.logs.sound_logs import (
    CLOCK_MS,
    LogSegment,
    Producer,
    legacy_message,
    marker,
    sound_log,
    wrapper,
)
from support.logs.strategies import CONTROL, MAX_INT32, MAX_INT64, TRANSACTIONAL, v2_batch


@kind
def sound(case: Case) -> None:
    pass


# Batches of a segment in another order.


def _batches(change: Callable[[random.Random, list[bytes]], list[bytes]]) -> Mutation:
    def mutate(case: Case) -> None:
        segment = case.some()
        if segment.batches:
            segment.batches = change(case.rng, segment.batches)

    mutate.__name__ = change.__name__
    return kind(mutate)


def _slice(rng: random.Random, batches: list[bytes]) -> tuple[int, int]:
    first = rng.randrange(len(batches))
    return first, rng.randint(first + 1, len(batches))


@_batches
def cut_at_batch(rng: random.Random, batches: list[bytes]) -> list[bytes]:
    return batches[: rng.randrange(len(batches))]


@_batches
def dropped_batches(rng: random.Random, batches: list[bytes]) -> list[bytes]:
    first, end = _slice(rng, batches)
    return batches[:first] + batches[end:]


@_batches
def repeated_batch(rng: random.Random, batches: list[bytes]) -> list[bytes]:
    again = rng.choice(batches)
    place = rng.randint(0, len(batches))
    return batches[:place] + [again] * rng.choice([1, 1, 2]) + batches[place:]


@_batches
def repeated_batches(rng: random.Random, batches: list[bytes]) -> list[bytes]:
    first, end = _slice(rng, batches)
    return batches[:end] + batches[first:]


@_batches
def swapped_batches(rng: random.Random, batches: list[bytes]) -> list[bytes]:
    one, other = rng.randrange(len(batches)), rng.randrange(len(batches))
    changed = [*batches]
    changed[one], changed[other] = batches[other], batches[one]
    return changed


@_batches
def shuffled_batches(rng: random.Random, batches: list[bytes]) -> list[bytes]:
    return rng.sample(batches, len(batches))


@_batches
def reversed_batches(rng: random.Random, batches: list[bytes]) -> list[bytes]:
    return batches[::-1]


@_batches
def last_goes_back(rng: random.Random, batches: list[bytes]) -> list[bytes]:
    return [*batches, rng.choice(batches[:3])]


@_batches
def spliced_batches(rng: random.Random, batches: list[bytes]) -> list[bytes]:
    """Put batches of another log in, of any format."""
    others = [batch for segment in sound_log(rng) for batch in segment.batches]
    place = rng.randint(0, len(batches))
    return batches[:place] + others[: rng.randint(1, 5)] + batches[place:]


# Offsets far off.


def _shift(batches: list[bytes], by: int) -> list[bytes]:
    return [with_field(batch, "base_offset", get(batch, "base_offset") + by) for batch in batches]


@kind
def near_int32(case: Case) -> None:
    """Offsets from some batch on as far from the base offset as a segment holds, or further."""
    segment = case.some()
    if segment.batches:
        place = case.place(segment)
        target = segment.base_offset + MAX_INT32 + case.rng.randint(-6, 6)
        if case.rng.random() < 0.2:
            target += case.rng.choice([MAX_INT32, MAX_INT32 + 1, 2**33])
        by = target - get(segment.batches[place], "base_offset")
        end = case.rng.choice([len(segment.batches), len(segment.batches), place + 1])
        segment.batches[place:end] = _shift(segment.batches[place:end], by)


@kind
def near_int64(case: Case) -> None:
    """All offsets, names of segments too, shifted to the end of what there is."""
    last = case.segments[-1]
    end = max([last.base_offset, *(get(batch, "base_offset") for batch in last.batches)])
    room = case.rng.choice([0, 1, 2, 10, 100, MAX_INT32 - 1, MAX_INT32, MAX_INT32 + 1])
    by = MAX_INT64 - end - room
    for segment in case.segments:
        segment.base_offset += by
        segment.batches = _shift(segment.batches, by)


@kind
def offsets_near_int64(case: Case) -> None:
    """Some batches alone at the end of what there is."""
    segment = case.some()
    if segment.batches:
        place = case.place(segment)
        offset = MAX_INT64 - case.rng.choice([0, 1, 2, 100, 2**31, 2**32])
        segment.batches[place] = with_field(segment.batches[place], "base_offset", offset)


@kind
def negative_offsets(case: Case) -> None:
    segment = case.some()
    if segment.batches:
        place = case.place(segment)
        offset = -case.rng.choice([1, 2, 100, 2**31, 2**32, 2**63])
        segment.batches[place] = with_field(segment.batches[place], "base_offset", offset)


@kind
def offsets_below_base(case: Case) -> None:
    segment = case.some()
    if segment.batches:
        place = case.place(segment)
        offset = max(0, segment.base_offset - case.rng.choice([1, 2, 10, 1000]))
        segment.batches[place] = with_field(segment.batches[place], "base_offset", offset)


@kind
def wrong_base(case: Case) -> None:
    """A segment whose file has the name of another offset."""
    segment = case.some()
    by = case.rng.choice([1, -1, 3, 20, -20, 1000, 2**31, -(2**31), 2**32, 2**33])
    base = min(max(0, segment.base_offset + by), MAX_INT64)
    if base not in {other.base_offset for other in case.segments}:
        segment.base_offset = base


@kind
def same_offset_often(case: Case) -> None:
    """Batches that all say the same base offset."""
    segment = case.some()
    if segment.batches:
        offset = get(case.rng.choice(segment.batches), "base_offset")
        place = case.place(segment)
        segment.batches[place:] = [
            with_field(batch, "base_offset", offset) for batch in segment.batches[place:]
        ]


# Several segments.


def _others(case: Case) -> list[LogSegment]:
    while len(case.segments) < 2:
        last = case.segments[-1]
        end = max([last.base_offset, *(get(batch, "base_offset") for batch in last.batches)])
        segment = LogSegment(end + 100)
        for batch in [batch for other in sound_log(case.rng) for batch in other.batches][:6]:
            segment.batches.append(with_field(batch, "base_offset", end + 100))
            end += 50
        case.segments.append(segment)
    return case.rng.sample(case.segments, 2)


@kind
def dropped_segment(case: Case) -> None:
    segment, _ = _others(case)
    case.segments.remove(segment)


@kind
def swapped_segments(case: Case) -> None:
    one, other = _others(case)
    one.batches, other.batches = other.batches, one.batches


@kind
def copied_segment(case: Case) -> None:
    one, other = _others(case)
    one.batches = [*other.batches]


@kind
def joined_segments(case: Case) -> None:
    one, other = _others(case)
    one.batches = (
        one.batches + other.batches if case.rng.random() < 0.5 else [*other.batches, *one.batches]
    )


@kind
def overlapping_segments(case: Case) -> None:
    """A segment that reaches into the next one's offsets."""
    one, other = sorted(_others(case), key=lambda segment: segment.base_offset)
    by = other.base_offset - one.base_offset + case.rng.randint(-3, 3)
    one.batches += _shift(one.batches[-3:], by)


# Transactions.


@kind_of("transactions")
def dropped_markers(case: Case) -> None:
    for segment in case.segments:
        segment.batches = [
            batch for batch in segment.batches if not _is_control(batch) or case.rng.random() < 0.5
        ]


@kind_of("transactions")
def repeated_markers(case: Case) -> None:
    for segment in case.segments:
        segment.batches = [
            again
            for batch in segment.batches
            for again in [batch] * (2 if _is_control(batch) and case.rng.random() < 0.5 else 1)
        ]


@kind_of("transactions")
def moved_markers(case: Case) -> None:
    """Markers anywhere in the log."""
    markers = [
        batch for segment in case.segments for batch in segment.batches if _is_control(batch)
    ]
    for segment in case.segments:
        segment.batches = [batch for batch in segment.batches if not _is_control(batch)]
    for batch in markers:
        batches = case.rng.choice(case.segments).batches
        batches.insert(case.rng.randint(0, len(batches)), batch)


@kind_of("transactions")
def outside_transactions(case: Case) -> None:
    """Batches of which some no longer say that they are transactional, or now say it."""
    for segment in case.segments:
        segment.batches = [
            with_field(batch, "attributes", get(batch, "attributes") ^ TRANSACTIONAL)
            if case.rng.random() < 0.2 and "attributes" in fields_of(batch)
            else batch
            for batch in segment.batches
        ]


@kind_of("transactions")
def other_producers(case: Case) -> None:
    """Batches that say another producer's id, or another epoch."""
    for segment in case.segments:
        for place, batch in enumerate(segment.batches):
            if case.rng.random() < 0.2 and "producer_id" in fields_of(batch):
                other = case.rng.choice(case.some().batches or [batch])
                name = case.rng.choice(["producer_id", "producer_epoch", "base_sequence"])
                if name in fields_of(other):
                    segment.batches[place] = with_field(batch, name, get(other, name))


@kind_of("transactions")
def odd_markers(case: Case) -> None:
    """Control batches of every form."""
    rng, segment = case.rng, case.some()
    for _ in range(rng.randint(1, 3)):
        near = get(rng.choice(segment.batches or [bytes(61)]), "base_offset")
        known = [get(batch, "producer_id") for batch in segment.batches if _is_v2(batch)]
        producer = Producer(rng.choice([*known, 5]), rng.choice([0, 1, -1]), 0, True)
        key = struct.pack(
            ">hh", rng.choice([0, 0, 0, 1, -1, 9]), rng.choice([0, 0, 1, 2, 6, 99, -1])
        )
        value = struct.pack(">hi", rng.choice([0, 0, 0, 1, -1]), rng.choice([0, 7, -1, MAX_INT32]))
        odd = marker(
            near,
            CLOCK_MS,
            producer,
            key=rng.choice([key, key, key, key[:3], b"", None, key + b"x"]),
            value=rng.choice([value, value, value, value[:5], b"", None, value + b"x"]),
            codec=rng.choice([0, 0, 0, 1, 2, 3, 4, 5, 7]),
            record_count=rng.choice([None, None, None, 0, 2, -1]),
            base_sequence=rng.choice([-1, -1, 0, 7]),
        )
        segment.batches.insert(rng.randint(0, len(segment.batches)), odd)


@kind_of("transactions")
def data_as_control(case: Case) -> None:
    segment = case.some()
    if segment.batches:
        place = case.place(segment)
        batch = segment.batches[place]
        segment.batches[place] = with_field(batch, "attributes", get(batch, "attributes") ^ CONTROL)


def _is_v2(batch: bytes) -> bool:
    return "producer_id" in fields_of(batch)


def _is_control(batch: bytes) -> bool:
    return _is_v2(batch) and bool(get(batch, "attributes") & CONTROL)


# Wrappers, and formats next to each other.


@kind_of("legacy")
def odd_wrappers(case: Case) -> None:
    """Compressed messages whose content is not what a client writes."""
    rng, segment = case.rng, case.some()
    place = rng.randint(0, len(segment.batches))
    near = get(segment.batches[place - 1], "base_offset") + 1 if segment.batches else 0
    magic, codec = rng.choice([0, 1]), rng.choice([1, 2, 3, 1, 2, 3, 4, 5, 7])
    inner_magic = rng.choice([magic, magic, magic, 1 - magic])
    offsets = rng.choice(
        [[0, 1, 2], [near, near + 1], [2, 1, 0], [], [5], [-1], [MAX_INT64], [0, 2**40]]
    )
    inner = [legacy_message(inner_magic, offset, CLOCK_MS, None, b"v") for offset in offsets]
    if inner and rng.random() < 0.3:
        inner[-1] = rng.choice(
            [
                inner[-1][:-1],
                inner[-1][:12] + b"abcd" + inner[-1][16:],
                wrapper(magic, offsets[-1], 1, [legacy_message(magic, 0, CLOCK_MS, None, b"v")]),
                v2_batch(near, [(CLOCK_MS, None, b"v")]),
                rng.randbytes(20),
            ]
        )
    value = rng.choice([None] * 4 + [b"", rng.randbytes(30)])
    odd = wrapper(magic, min(near + len(offsets), MAX_INT64), codec, inner, value=value)
    segment.batches[place:place] = [odd]


@kind_of("mixed")
def mixed_formats(case: Case) -> None:
    """Formats in an order that no broker writes."""
    for segment in case.segments:
        offsets = [get(batch, "base_offset") for batch in segment.batches]
        shuffled = case.rng.sample(segment.batches, len(segment.batches))
        segment.batches = [
            with_field(batch, "base_offset", offset)
            for batch, offset in zip(shuffled, offsets, strict=True)
        ]


@kind_of("mixed")
def mixed_near_int32(case: Case) -> None:
    near_int32(case)
    if case.rng.random() < 0.5:
        mixed_formats(case)


# Settings.


@kind
def full_index(case: Case) -> None:
    case.settings = case.settings._replace(
        index_interval_bytes=case.rng.choice([0, 0, 64]),
        segment_index_bytes=case.rng.choice([12, 16, 24, 36, 48, 100]),
    )


@kind
def log_start_offset(case: Case) -> None:
    offsets = [segment.base_offset for segment in case.segments]
    offsets += [get(batch, "base_offset") for segment in case.segments for batch in segment.batches]
    start = case.rng.choice(offsets) + case.rng.choice([0, 0, 1, 3, -2])
    case.settings = case.settings._replace(log_start_offset=max(0, start))


@kind
def expired_producers(case: Case) -> None:
    now_ms = CLOCK_MS + DAY_MS + case.rng.choice([0, 1, 10, 500, 1000, 2000, 5000])
    case.settings = case.settings._replace(now_ms=now_ms)
