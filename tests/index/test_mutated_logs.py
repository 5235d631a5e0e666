"""Logs to which something happened, in three modes: what a build leaves of them, and Kafka.

`make test-random` draws 10,000 anew. What differs repeats alone by the seed and the number told:
``REFEREE_SEED=7 MUTATED_FROM=1234 MUTATED_LOGS=1``, and ``PYTHONPATH=tests python -m
support.logs.mutated_logs 7 1234 FOLDER`` writes the log.
"""

import gzip
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest

from kafka_segments.kafka.index.log.loading import RecoveryMode
from support.kafka.kafka_referee import Referee
from support.logs.great_lengths import says_great_length
from support.logs.log_builds import (
    built_by_kafka,
    built_by_us,
    compared,
    compared_apart,
    told_differences,
)
from support.logs.mutated_logs import KINDS, draw
from support.logs.mutation_case import LogSettings
from support.logs.strategies import GZIP, v0_message, v1_message

LOGS = int(os.environ.get("MUTATED_LOGS", str(len(KINDS))))
FIRST = int(os.environ.get("MUTATED_FROM", "0"))
_PARTS = 7
_WORKERS, _LOGS_FOR_WORKERS = 2, 500
# A marker that cannot be parsed is read again where offsets went back (two logs); the load ends
# before it comes to the segment that it would split.
ODD_SEED, ODD = 20261123, (2073, 6231, 9700)


@pytest.fixture(scope="module", autouse=True)
def compiled(referee: Referee, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is compiled at a first log, and what Kafka's JVM loads."""
    for difference in compared(referee, tmp_path_factory.mktemp("first"), seed, [FIRST]):
        assert difference.explanation, difference


@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("part", range(_PARTS))
def test_mutated_logs_give_what_kafka_makes_of_them(
    referee: Referee,
    memory_folder: Path,
    seed: int,
    capsys: pytest.CaptureFixture[str],
    part: int,
) -> None:
    started = time.monotonic()
    numbers = range(FIRST, FIRST + LOGS)[part::_PARTS]
    if LOGS < _LOGS_FOR_WORKERS:
        found = [*compared(referee, memory_folder, seed, numbers)]
    else:
        with ProcessPoolExecutor(_WORKERS, mp_context=get_context("spawn")) as pool:
            shares = [numbers[worker::_WORKERS] for worker in range(_WORKERS)]
            each = pool.map(partial(compared_apart, memory_folder, seed), shares)
            found = [difference for share in each for difference in share]

    explained = Counter(each.explanation for each in found if each.explanation)
    with capsys.disabled():
        print(
            f"\n{len(numbers)} mutated logs from {FIRST + part} on, seed {seed},"
            f" {time.monotonic() - started:.0f} s; explained: {dict(explained) or 'none'}"
        )
    unexplained = [str(each) for each in found if not each.explanation]
    assert not unexplained, "\n".join(unexplained)


@pytest.mark.parametrize("number", ODD)
def test_logs_that_once_differed_are_equal(
    referee: Referee, memory_folder: Path, number: int
) -> None:
    assert not [*compared(referee, memory_folder, ODD_SEED, [number])]


def test_a_build_with_another_interval_differs_in_every_mode(
    referee: Referee, memory_folder: Path, seed: int
) -> None:
    drawn = next(
        each
        for number in range(0, 10_000, len(KINDS))
        if sum(map(len, (each := draw(seed, number)).segments.values())) > 5000
    )
    told = []
    for mode in RecoveryMode:
        scratch = memory_folder / mode
        ours = built_by_us(drawn.write(scratch / "ours" / "t-0"), scratch, mode, LogSettings(0))
        partition = drawn.write(scratch / "kafkas" / "t-0")
        told.append(told_differences(ours, built_by_kafka(referee, partition, mode, LogSettings())))

    assert all(told)


def test_memory_runs_out_only_where_a_length_is_great() -> None:
    inner = bytes(8) + (2**30).to_bytes(4, "big") + bytes(30)
    sound = v1_message(0, 1, None, gzip.compress(v0_message(0, None, b"v")), attributes=GZIP)
    great = v1_message(0, 1, None, gzip.compress(inner), attributes=GZIP)
    snappy = v1_message(0, 1, None, b"\xff\xff\xff\xff\x07abc", attributes=2)

    assert not says_great_length(sound + sound)
    assert says_great_length(sound + great)
    assert says_great_length(snappy)


def test_a_log_is_the_same_whenever_it_is_drawn(seed: int) -> None:
    drawn = [draw(seed, number) for number in range(len(KINDS))]

    assert drawn == [draw(seed, number) for number in range(len(KINDS))]
    assert len({each.kind for each in drawn}) == len(KINDS) >= 35
