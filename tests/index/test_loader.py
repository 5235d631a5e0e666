"""Whole logs, loaded by Kafka's own UnifiedLog and folded by us, made afresh in each run."""

import os
import random
import shutil
from pathlib import Path

import pytest

from kafka_segments.kafka.index.log.loading import DEFAULT_EXPIRATION_MS, LoadOptions, RecoveryMode
from kafka_segments.kafka.index.log.producer_state import ProducerState
from support.kafka.kafka_referee import Referee
from support.kafka.side_by_side import loaded_by_kafka, loaded_by_us

LOGS = int(os.environ.get("REFEREE_LOGS", "24"))
KINDS = ("v2", "transactions", "mixed", "legacy")


@pytest.mark.parametrize("mode", [RecoveryMode.LOADER_UNCLEAN, RecoveryMode.LOADER_MISSING])
def test_random_logs_damaged_ones_among_them_are_loaded_as_kafka_does(
    referee: Referee, tmp_path: Path, mode: RecoveryMode, seed: int
) -> None:
    differences = []
    for number in range(LOGS):
        folder = referee.generate(tmp_path / f"{number}", seed + number, KINDS[number % 4])
        damage = referee.damage(folder, seed + number) if number // 4 % 3 else []

        mine = loaded_by_us(folder, mode)
        kafkas = loaded_by_kafka(referee, folder, mode)

        if mine != kafkas:
            names = sorted(
                name for name in mine.keys() | kafkas if mine.get(name) != kafkas.get(name)
            )
            differences.append((seed + number, damage, names))
        shutil.rmtree(tmp_path / f"{number}")

    assert differences == []


def _draw_options(
    choice: random.Random, number: int, folder: Path, loaded: dict[str, object]
) -> LoadOptions:
    """Draw a log start at or beside a base offset, or a clock by which producers have expired.

    The log start never lies above the log's end: there a broker drops every segment.
    """
    bases = sorted(int(log.name[:20]) for log in folder.glob("*.log"))
    near = choice.choice(bases) + choice.choice([-1, 0, 0, 1, 5])
    start = 0 if number % 3 else max(min(near, bases[-1]), 0)
    states = [state for state in loaded.values() if isinstance(state, ProducerState)]
    seen = [entry.timestamp for state in states for entry in state.entries.values()]
    last_seen = choice.choice([0, *sorted(seen)])
    now = last_seen + DEFAULT_EXPIRATION_MS + choice.choice([-1, 0, 1])
    return LoadOptions(now_ms=max(0, now), log_start_offset=start)


@pytest.mark.parametrize("mode", [RecoveryMode.LOADER_UNCLEAN, RecoveryMode.LOADER_MISSING])
def test_a_log_start_and_expired_producers_change_what_kafka_changes(
    referee: Referee, tmp_path: Path, mode: RecoveryMode, seed: int
) -> None:
    differences, starts, expired = [], 0, 0
    for number in range(LOGS):
        choice = random.Random(seed + number)
        kind = ("transactions", "v2", "transactions", "mixed")[number % 4]
        folder = referee.generate(tmp_path / f"{number}", seed + 1000 + number, kind)
        plain = loaded_by_us(folder, mode)
        options = _draw_options(choice, number, folder, plain)

        mine = loaded_by_us(folder, mode, options)
        kafkas = loaded_by_kafka(referee, folder, mode, options)

        starts += options.log_start_offset > 0 and mine != plain
        expired += options.log_start_offset == 0 and mine != plain
        if mine != kafkas:
            names = [name for name in mine.keys() | kafkas if mine.get(name) != kafkas.get(name)]
            differences.append((seed + number, options, sorted(names)))
        shutil.rmtree(tmp_path / f"{number}")

    assert differences == []
    assert min(starts, expired) > 2
