"""Drawn logs to which something happened: Kafka loads them with a kit to what it does without."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.text.checkpoints import (
    LOG_START_OFFSET,
    PARTITION_METADATA,
    RECOVERY_POINT,
)
from kafka_segments.verbs.change.recovery.apply.run import ApplyOptions, run_apply
from kafka_segments.verbs.change.recovery.kit.fold import FoldSettings
from kafka_segments.verbs.change.recovery.kit.listing import plan_kit
from kafka_segments.verbs.change.recovery.kit.run import KitOptions, read_in_threads, run_kit
from kafka_segments.verbs.change.recovery.kit_manifest import KitState, LogKit
from support.kafka.kafka_referee import Referee, RefereeError
from support.logs.mutated_logs import KINDS, MutatedLog, draw
from support.verbs.recovery_kits import EXPIRATION_MS, METADATA

LOGS = int(os.environ.get("MUTATED_LOGS", str(len(KINDS))))
FIRST = int(os.environ.get("MUTATED_FROM", "0"))
PARTS = 5  # odd: each has logs of all kinds that were loaded before, and that were not
_OF_A_SEGMENT = (".index", ".timeindex", ".txnindex")


class _Drawn:
    """A drawn log in the folder of a broker that has loaded some of it before."""

    def __init__(self, referee: Referee, drawn: MutatedLog, folder: Path) -> None:
        self.drawn = drawn
        self.folder = folder
        self._referee = referee
        self.log_dir = folder / "logs"
        self.log = self.log_dir / "t-0"
        self.log.mkdir(parents=True)
        bases = sorted(drawn.segments)
        self.point = 0
        if len(bases) > 1 and drawn.number % 2:
            self.point = self._loaded_before(bases[: len(bases) // 2])
        for base, data in drawn.segments.items():
            (self.log / f"{base:020d}.log").write_bytes(data)
            (self.log / f"{base:020d}.index").touch()
            (self.log / f"{base:020d}.timeindex").touch()
        (self.log / PARTITION_METADATA).write_bytes(METADATA)
        start = drawn.settings.log_start_offset
        self._write_point(self.log_dir, self.point)
        (self.log_dir / LOG_START_OFFSET).write_text(f"0\n1\nt 0 {start}\n" if start else "0\n0\n")

    @staticmethod
    def _write_point(log_dir: Path, point: int) -> None:
        (log_dir / RECOVERY_POINT).write_text(f"0\n1\nt 0 {point}\n")

    def _loaded_before(self, bases: Sequence[int]) -> int:
        """Load the first segments alone, as a clean stop before would have left them."""
        for base in bases:
            (self.log / f"{base:020d}.log").write_bytes(self.drawn.segments[base])
            (self.log / f"{base:020d}.index").touch()
        try:
            self.load(self.log, 0)
        except RefereeError:
            shutil.rmtree(self.log)
            self.log.mkdir()
            return 0
        for left in self.log.glob("*.deleted"):
            left.unlink()
        return bases[-1]

    def load(self, log: Path, point: int) -> int:
        settings = self.drawn.settings
        loaded = self._referee.load_log(
            log,
            is_clean=False,
            recovery_point=point,
            log_start_offset=settings.log_start_offset,
            now_ms=settings.now_ms,
            index_interval_bytes=settings.index_interval_bytes,
            segment_index_bytes=settings.segment_index_bytes,
        )
        end: int = loaded["log_end_offset"]
        return end

    def make_kit(self) -> LogKit:
        settings = self.drawn.settings
        recovery = RecoveryOptions(
            index_interval_bytes=settings.index_interval_bytes,
            segment_index_bytes=settings.segment_index_bytes,
            is_load=True,
        )
        out = self.folder / "kit"
        fold = FoldSettings(recovery, settings.now_ms, EXPIRATION_MS)
        work = plan_kit([str(self.log_dir)], str(out))
        options = KitOptions(str(out), fold, False)
        (log,) = run_kit(options, work=work, read=read_in_threads(1), made_ms=settings.now_ms)
        return log


def _left(log: Path, end: int) -> dict[str, Any]:
    """Return what a load leaves: segments with their index files, the last snapshot, epochs."""
    logs = {path.name: path.read_bytes() for path in log.glob("*.log") if path.stat().st_size}
    indexes = {
        path.name: path.read_bytes()
        for path in log.iterdir()
        if path.suffix in _OF_A_SEGMENT and path.stat().st_size
        if f"{path.stem}.log" in logs
    }
    others = {f"{end:020d}.snapshot", "leader-epoch-checkpoint"}
    files = {path.name: path.read_bytes() for path in log.iterdir() if path.name in others}
    return {"end": end, **logs, **indexes, **files}


@pytest.mark.parametrize("part", range(min(PARTS, LOGS)))
def test_kafka_loads_logs_with_a_kit_to_what_it_loads_them_to_without(
    referee: Referee, memory_folder: Path, seed: int, capsys: pytest.CaptureFixture[str], part: int
) -> None:
    numbers = range(FIRST + part, FIRST + LOGS, PARTS)
    ready, cut, differing = 0, 0, []
    for number in numbers:
        folder = memory_folder / str(number)
        drawn = _Drawn(referee, draw(seed, number), folder)
        log = drawn.make_kit()
        if log.state != KitState.READY:
            shutil.rmtree(folder)
            continue
        ready += 1
        cut += log.cut is not None
        without = folder / "without" / "t-0"
        shutil.copytree(drawn.log, without)
        options = ApplyOptions(folder / "kit", execute=True)
        assert [step.status for step in run_apply(options)] == ["done"]
        point = drawn.point
        expected = _left(without, drawn.load(without, point))
        found = _left(drawn.log, drawn.load(drawn.log, log.next_recovery_point))
        differing += [
            f"{number} {drawn.drawn.kind} from {drawn.point}: {name}"
            for name in expected.keys() | found.keys()
            if expected.get(name) != found.get(name)
        ]
        shutil.rmtree(folder)
    with capsys.disabled():
        print(f"\n{len(numbers)} mutated logs, {ready} with a kit, {cut} of them cut; seed {seed}")
    assert not differing, "\n".join(differing)
    assert ready > len(numbers) // 8
