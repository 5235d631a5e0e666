"""Logs of every format and codec: equal wherever they are cut, and whatever they are written in."""

import random
from collections.abc import Callable

import pytest

from kafka_segments.files.segments.converter import SegmentConverter
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.verbs.copies.divergence.decide.copies import DifferenceKind
from support.logs.log_copies import LogCopy, compared, flipped
from support.logs.log_reading import batches_of, reader_of
from support.logs.sound_logs import STYLES, LogSegment, sound_log

ROUNDS = 10


def _copy(segments: list[LogSegment]) -> LogCopy:
    held = [(segment.base_offset, list(segment.batches)) for segment in segments]
    return LogCopy(held, held[0][0])


def _cut_elsewhere(rng: random.Random, segments: list[LogSegment]) -> LogCopy:
    """Roll the same batches at other places."""
    cut = [LogSegment(segments[0].base_offset)]
    following = segments[0].base_offset
    for batch in (one for segment in segments for one in segment.batches):
        if rng.random() < 0.2 and cut[-1].batches:
            cut.append(LogSegment(following))
        cut[-1].batches.append(batch)
        following = int(batches_of(batch)[wire.BATCH_LAST_OFFSET, 0]) + 1
    return _copy(cut)


def _drawn(rng: random.Random, style: str) -> list[LogSegment]:
    segments = sound_log(rng, style)
    while sum(len(segment.batches) for segment in segments) < 3:
        segments = sound_log(rng, style)
    return segments


@pytest.mark.parametrize("style", STYLES)
def test_a_log_equals_itself_wherever_it_is_cut(seed: int, style: str) -> None:
    rng = random.Random(f"{seed} {style}")
    for _ in range(ROUNDS):
        segments = _drawn(rng, style)
        rows = compared({"a": _copy(segments), "b": _cut_elsewhere(rng, segments)})

        assert {row.kind for row in rows} == {DifferenceKind.EQUAL}


@pytest.mark.parametrize("style", ["legacy", "mixed"])
def test_a_converted_log_has_the_same_records(seed: int, style: str) -> None:
    rng = random.Random(f"{seed} converted {style}")
    for _ in range(ROUNDS):
        segments = _drawn(rng, style)
        wrong = _copy(segments)
        for index, segment in enumerate(segments):
            out = bytearray()
            SegmentConverter().convert(
                reader_of(segment.log), out.extend, size_bytes=len(segment.log)
            )
            wrong.spoil(index, bytes(out))
        rows = compared({"a": _copy(segments), "b": wrong})

        assert {row.kind for row in rows} <= {DifferenceKind.EQUAL, DifferenceKind.RECOMPRESSED}


@pytest.mark.parametrize("style", STYLES)
def test_a_flipped_bit_in_the_middle_of_any_format_is_found(seed: int, style: str) -> None:
    rng = random.Random(f"{seed} flipped {style}")
    for _ in range(ROUNDS):
        segments = _drawn(rng, style)
        wrong = _cut_elsewhere(rng, segments)
        index = rng.choice([at for at, (_, held) in enumerate(wrong.segments) if held])
        batches = wrong.segments[index][1]
        at = rng.randrange(len(batches))
        place = rng.randrange(12, len(batches[at]))  # offset and size: see compared copies
        hurt = flipped(batches[at], place, rng.randrange(8))
        wrong.spoil(index, b"".join([*batches[:at], hurt, *batches[at + 1 :]]))
        rows = compared({"a": _copy(segments), "b": wrong, "c": _copy(segments)})

        found = [row for row in rows if row.is_finding]
        assert {(row.copies, row.right) for row in found} == {(("b",), ("a", "c"))}, found


PAGE = 512


def _zeroed(rng: random.Random, wrong: LogCopy) -> set[bytes]:
    """Zero a page of a segment that is not the last; give the batches that it hit."""
    index = rng.choice([at for at, (_, held) in enumerate(wrong.segments[:-1]) if held])
    data = wrong.file(index)
    first = rng.randrange(len(data))
    last = min(first + PAGE, len(data))
    wrong.spoil(index, data[:first] + bytes(last - first) + data[last:])
    hit, position = set(), 0
    for batch in wrong.segments[index][1]:
        end = position + len(batch)
        low, high = max(first, position) - position, min(last, end) - position
        if low < high and any(batch[low:high]):
            hit.add(batch)
        position = end
    return hit


def _swapped(rng: random.Random, wrong: LogCopy) -> set[bytes]:
    """Exchange two segments; give all of their batches."""
    one, other = rng.sample([at for at, (_, held) in enumerate(wrong.segments) if held], 2)
    first, second = wrong.file(one), wrong.file(other)
    wrong.spoil(one, second)
    wrong.spoil(other, first)
    return {*wrong.segments[one][1], *wrong.segments[other][1]}


# Damage can uncover the messages inside of a compressed one of v0 or v1.
@pytest.mark.parametrize(
    ("style", "spoil"),
    [*((style, _swapped) for style in STYLES), ("v2", _zeroed), ("transactions", _zeroed)],
)
def test_every_batch_that_a_disk_spoils_is_found_and_the_right_copies_are_named(
    seed: int, style: str, spoil: Callable[[random.Random, LogCopy], set[bytes]]
) -> None:
    rng = random.Random(f"{seed} {spoil.__name__} {style}")
    for _ in range(2 * ROUNDS):
        segments = _drawn(rng, style)
        wrong = _cut_elsewhere(rng, segments)
        while sum(bool(held) for _, held in wrong.segments[:-1]) < 2:
            segments = _drawn(rng, style)
            wrong = _cut_elsewhere(rng, segments)
        hit = spoil(rng, wrong)
        rows = compared({"a": _copy(segments), "b": wrong, "c": _copy(segments)})

        found = [row for row in rows if row.is_finding]
        assert {(row.copies, row.right) for row in found} <= {(("b",), ("a", "c"))}, found
        for batch in hit:
            last = int(batches_of(batch)[wire.BATCH_LAST_OFFSET, 0])
            assert any(row.from_offset <= last < row.until_offset for row in found), (last, found)
