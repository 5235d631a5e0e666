"""Whole logs, loaded by Kafka's own UnifiedLog and folded by us, made afresh in each run."""

import os
import shutil
from pathlib import Path

import pytest

from kafka_referee import Referee
from kafka_segments.index.log_recovery import RecoveryMode
from side_by_side import loaded_by_kafka, loaded_by_us

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
