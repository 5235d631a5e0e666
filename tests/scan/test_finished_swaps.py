"""Logs with ``.swap`` and ``.cleaned`` files beside them, loaded by us and by Kafka's classes."""

import os
import random
import struct
from pathlib import Path

import pytest

from kafka_segments.kafka.index.log.loading import RecoveryMode
from support.kafka.kafka_referee import Referee
from support.logs.log_builds import built_by_us, differences
from support.logs.mutated_logs import MutatedLog
from support.logs.mutation_case import Case, LogSettings
from support.logs.strategies import v2_batch

LOGS = min(1000, int(os.environ.get("MUTATED_LOGS", "30")))
LOADS = (RecoveryMode.LOADER_UNCLEAN, RecoveryMode.LOADER_MISSING)
FAR = 2**31 + 40


def batches(start: int, count: int) -> bytes:
    return b"".join(v2_batch(start + i, [(start + i, None, b"v" * 90)]) for i in range(count))


FIRST, SECOND = batches(0, 8), batches(FAR, 4)
WHOLE = {0: FIRST + SECOND}


def named(base: int, suffix: str) -> str:
    return f"{base:020d}.{suffix}"


def log_of(segments: dict[int, bytes], leftovers: dict[str, bytes]) -> MutatedLog:
    return MutatedLog(1, 0, "swaps", segments, LogSettings(), tuple(leftovers.items()))


HALVES = {
    "both pieces": {named(0, "log.swap"): FIRST, named(FAR, "log.swap"): SECOND},
    "first alone": {named(0, "log.swap"): FIRST},
    "second still cleaned": {named(0, "log.swap"): FIRST, named(FAR, "log.cleaned"): SECOND},
    "first still cleaned": {named(0, "log.cleaned"): FIRST, named(FAR, "log.swap"): SECOND},
    "second torn": {named(0, "log.swap"): FIRST, named(FAR, "log.swap"): SECOND + b"torn" * 9},
    "empty": {named(0, "log.swap"): b""},
}


@pytest.mark.parametrize("mode", LOADS)
@pytest.mark.parametrize("left", HALVES)
def test_a_split_that_was_broken_off_is_finished_as_by_a_start(
    referee: Referee, memory_folder: Path, mode: RecoveryMode, left: str
) -> None:
    drawn = log_of(WHOLE, HALVES[left])

    assert not [*differences(referee, drawn, memory_folder / mode, mode)]


def test_each_segment_on_its_own_is_taken_as_it_lies_there(memory_folder: Path) -> None:
    drawn = log_of({0: FIRST}, {named(0, "log.swap"): batches(0, 2)})
    partition = drawn.write(memory_folder / "t-0")

    built = built_by_us(partition, memory_folder, RecoveryMode.SEGMENT, LogSettings())

    assert built.rows[0].recovery.next_offset == 8


def drawn_log(rng: random.Random) -> MutatedLog:
    """Draw a sound log, and what a compaction or a split that was broken off leaves of it."""
    case = Case(rng)
    left = {}
    for at, segment in enumerate(case.segments):
        if rng.random() < 0.5:
            continue
        kept = [batch for batch in segment.batches if rng.random() < 0.7]
        if rng.random() < 0.3:  # one segment of two
            kept += [batch for other in case.segments[at + 1 : at + 2] for batch in other.batches]
        suffix = rng.choice(["swap", "swap", "swap", "cleaned", "deleted"])
        left[named(segment.base_offset, f"log.{suffix}")] = b"".join(kept)
        if rng.random() < 0.5:
            left[named(segment.base_offset, f"index.{suffix}")] = b""
            left[named(segment.base_offset, f"timeindex.{suffix}")] = struct.pack(">qi", 5, 0)
    there = {
        segment.base_offset: segment.log
        for segment in case.segments
        if rng.random() < 0.8 or named(segment.base_offset, "log.swap") not in left
    }
    return MutatedLog(1, 0, "swaps", there, case.settings, tuple(left.items()))


def test_drawn_leftovers_are_finished_as_by_a_start(
    referee: Referee, memory_folder: Path, seed: int
) -> None:
    found = []
    for number in range(LOGS):
        drawn = drawn_log(random.Random(f"{seed} swaps {number}"))
        for mode in RecoveryMode:
            scratch = memory_folder / f"{number}-{mode}"
            for each in differences(referee, drawn, scratch, mode):
                if each.explanation is None:
                    names = [name for name, _ in drawn.leftovers]
                    found.append(f"{number} {each} {[*drawn.segments]} {names}")

    assert not found, "\n".join(found)
