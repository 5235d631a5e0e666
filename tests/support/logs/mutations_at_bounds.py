"""Mutations at bounds: splits, framings, markers and names near the next segment, limits."""

from __future__ import annotations

import struct

from support.logs.framings import drawn_framing
from support.logs.mutation_case import Case, get, kind, kind_of, with_field
from support.logs.sound_logs import CLOCK_MS, LogSegment, Producer, legacy_message, marker
from support.logs.strategies import MAX_INT32, MAX_INT64, v0_message, v1_message, v2_batch

_FAR = MAX_INT32 + 1


# Splits.


def _filled(case: Case, base: int, sizes: list[int]) -> list[bytes]:
    """Write batches of a record each, of these sizes in bytes, from an offset on."""
    overhead = len(v2_batch(0, [(CLOCK_MS, None, b"")]))
    return [
        v2_batch(min(base + at, MAX_INT64), [(CLOCK_MS + at, None, bytes(max(0, size - overhead)))])
        for at, size in enumerate(sizes)
    ]


def _split(case: Case, *groups: list[int]) -> None:
    """Make a segment whose offsets overflow before each group of sizes but the first."""
    segment = case.segments[-1]
    base, segment.batches = segment.base_offset, []
    for number, sizes in enumerate(groups):
        start = base + number * (_FAR + case.rng.choice([0, 1, 40]))
        segment.batches += _filled(case, start, sizes)


def _some_sizes(case: Case) -> list[int]:
    return [case.rng.randint(70, 900) for _ in range(case.rng.randint(1, 5))]


@kind
def cut_between_equal_batches(case: Case) -> None:
    size = case.rng.choice([128, 256, 512, 1024, 4096])
    _split(case, [size] * case.rng.choice([1, 2, 4, 8, 16]), _some_sizes(case))


@kind
def cut_behind_a_long_batch(case: Case) -> None:
    long = case.rng.choice([4096, 65_475, 65_519, 65_536, 70_000, 140_000])
    _split(case, [*_some_sizes(case), long], _some_sizes(case))


@kind
def cut_before_a_long_batch(case: Case) -> None:
    _split(case, _some_sizes(case), [case.rng.choice([65_536, 70_000]), *_some_sizes(case)])


@kind
def cut_into_many(case: Case) -> None:
    _split(case, *[_some_sizes(case) for _ in range(case.rng.randint(3, 6))])


@kind
def cut_and_back(case: Case) -> None:
    """Offsets overflow, and come back below the name of the second piece."""
    _split(case, _some_sizes(case), _some_sizes(case))
    segment = case.segments[-1]
    back = segment.base_offset + _FAR - case.rng.choice([1, 5, 1000, 2**20])
    segment.batches += _filled(case, back, _some_sizes(case))


@kind
def cut_of_damaged_bytes(case: Case) -> None:
    _split(case, _some_sizes(case), _some_sizes(case))
    segment = case.segments[-1]
    log = bytearray(segment.log)
    log[case.rng.randrange(len(log))] ^= 1 << case.rng.randrange(8)
    segment.batches = [bytes(log)]


@kind
def cut_named_as_next(case: Case) -> None:
    """A piece that gets the name of the segment behind the one that is split."""
    _split(case, _some_sizes(case), _some_sizes(case))
    last = case.segments[-1]
    name = get(last.batches[-1], "base_offset")
    case.segments.append(LogSegment(name, _filled(case, name, _some_sizes(case))))


@kind_of("mixed")
def cut_of_any_format(case: Case) -> None:
    segment = case.some()
    place = case.rng.randint(0, len(segment.batches))
    segment.batches[place:] = [
        with_field(batch, "base_offset", get(batch, "base_offset") + _FAR)
        for batch in segment.batches[place:]
    ]


# Framings of compressed messages and markers.


def _framed(case: Case, near: int) -> bytes:
    magic, count = case.rng.choice([0, 1]), case.rng.randint(1, 6)
    size = case.rng.choice([0, 20, 300, 2040, 3000])
    first = 0 if magic else near
    inner = b"".join(
        legacy_message(magic, first + at, CLOCK_MS, None, case.rng.randbytes(size))
        for at in range(count)
    )
    codec, packed = drawn_framing(case.rng, inner)
    if magic == 0:
        return v0_message(near + count - 1, None, packed, attributes=codec)
    return v1_message(near + count - 1, CLOCK_MS, None, packed, attributes=codec)


def _end(segment: LogSegment) -> int:
    ends = [get(batch, "base_offset") + 10 for batch in segment.batches]
    return min(max([segment.base_offset, *ends]), MAX_INT64 - 2**32)


@kind_of("legacy")
def framed_wrappers(case: Case) -> None:
    segment = case.some()
    for _ in range(case.rng.randint(1, 3)):
        segment.batches.append(_framed(case, _end(segment)))


@kind_of("legacy")
def framed_first_wrapper(case: Case) -> None:
    segment = case.some()
    segment.batches.insert(0, _framed(case, segment.base_offset))


def _framed_marker(case: Case, offset: int) -> bytes:
    rng = case.rng
    count = rng.choice([1, 1, 1, 2, 3])
    value = rng.choice([b"", bytes(3000)])
    plain = marker(offset, CLOCK_MS, Producer(5, 0, 0, True), key=bytes(4), value=bytes(6) + value)[
        61:
    ]
    codec, packed = drawn_framing(rng, plain * rng.choice([count, count, 1]))
    return marker(
        offset,
        CLOCK_MS,
        Producer(5, 0, 0, True),
        key=None,
        value=None,
        codec=codec,
        payload=packed,
        record_count=count,
    )


@kind_of("transactions")
def framed_markers(case: Case) -> None:
    segment = case.some()
    for _ in range(case.rng.randint(1, 2)):
        segment.batches.append(_framed_marker(case, _end(segment)))


# Markers that cannot be parsed, near the next segment.


def _bad_marker(case: Case, offset: int) -> bytes:
    key, value = case.rng.choice(
        [(b"\0", bytes(6)), (b"", bytes(6)), (bytes(4), struct.pack(">hi", -1, 0)), (bytes(4), b"")]
    )
    return marker(offset, CLOCK_MS, Producer(7, 0, 0, True), key=key, value=value)


def _next_segment(case: Case) -> LogSegment:
    """Append a segment some offsets behind the last one."""
    base = _end(case.segments[-1]) + case.rng.choice([0, 5, 30])
    case.segments.append(LogSegment(base, _filled(case, base, _some_sizes(case))))
    return case.segments[-1]


@kind
def bad_marker_near_next(case: Case) -> None:
    before, following = case.segments[-1], _next_segment(case)
    offset = following.base_offset + case.rng.choice([-1, -1, 0, 1, 5])
    before.batches.append(_bad_marker(case, max(offset, before.base_offset)))


@kind
def bad_marker_and_more(case: Case) -> None:
    before, following = case.segments[-1], _next_segment(case)
    offset = following.base_offset + case.rng.choice([0, 5])
    before.batches.append(_bad_marker(case, offset))
    before.batches += _filled(case, offset + 1, _some_sizes(case))
    _next_segment(case)


@kind
def bad_marker_far_behind_next(case: Case) -> None:
    before = case.segments[-1]
    _next_segment(case)
    offset = _next_segment(case).base_offset + case.rng.choice([0, 10])
    before.batches.append(_bad_marker(case, offset))


# Segments with names that are too low.


def _too_low(case: Case, batches: list[bytes]) -> None:
    before = case.segments[-1]
    last = max([before.base_offset, *(get(batch, "base_offset") for batch in before.batches)])
    base = max(before.base_offset + 1, last + 1 - case.rng.choice([0, 1, 3, 6]))
    case.segments.append(LogSegment(base, batches))
    base = max(last, base) + case.rng.choice([1, 3])
    case.segments.append(LogSegment(base, _filled(case, base, _some_sizes(case))))


@kind
def empty_segment_too_low(case: Case) -> None:
    _too_low(case, [])


@kind_of("transactions")
def empty_segment_in_transactions(case: Case) -> None:
    _too_low(case, [])


@kind
def torn_segment_too_low(case: Case) -> None:
    _too_low(case, [_filled(case, 0, [200])[0][: case.rng.choice([10, 40, 100])]])


@kind
def empty_segment_behind_bad_marker(case: Case) -> None:
    last = case.segments[-1]
    last.batches.append(_bad_marker(case, _end(last)))
    _too_low(case, [])


# A log start above the end.


def _end_of_log(case: Case) -> int:
    return max(
        get(batch, "base_offset") + get(batch, "last_offset_delta") + 1
        for segment in case.segments
        for batch in [*segment.batches, with_field(bytes(61), "base_offset", segment.base_offset)]
    )


@kind
def start_above_end(case: Case) -> None:
    start = _end_of_log(case) + case.rng.choice([0, 0, 1, 2, 100])
    case.settings = case.settings._replace(log_start_offset=max(0, start))


@kind_of("legacy")
def start_above_framed_end(case: Case) -> None:
    framed_wrappers(case)
    start_above_end(case)


@kind
def start_above_bad_marker(case: Case) -> None:
    last = case.segments[-1]
    last.batches.append(_bad_marker(case, _end(last)))
    start_above_end(case)


# Limits, and what a split that failed leaves.


@kind
def left_cleaned(case: Case) -> None:
    """Pieces that an earlier try had not finished, whether this one splits or not."""
    if case.rng.random() < 0.5:
        _split(case, _some_sizes(case), _some_sizes(case))
    for segment in case.segments:
        for suffix in ("log", "index", "timeindex"):
            name = f"{segment.base_offset:020d}.{suffix}.cleaned"
            case.leftovers[name] = segment.log[: case.rng.randint(0, 500)]


@kind
def least_index(case: Case) -> None:
    case.settings = case.settings._replace(
        index_interval_bytes=case.rng.choice([0, 1, 61, 299, 300, 301, 4096, MAX_INT32]),
        segment_index_bytes=case.rng.choice([4, 7, 8, 11, 12, 23, 24]),
    )
