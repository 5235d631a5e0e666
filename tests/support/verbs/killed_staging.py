"""Stage a log in processes that end at their first, second, … change of the file system.

Run as ``killed_staging.py EVERY FOLDER ROOT``; EVERY is 1, or 4 for the first, fifth, … of them.
Prints how many there are, or by EVERY a few more. After each the first folder must be as it was,
and another run must bring the same staged folder.
"""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka_segments.verbs.change.migrate.decide.actions import SegmentAction
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules, PlannedSegment
from kafka_segments.verbs.change.migrate.staged_log import Side, StagedLog, log_state
from kafka_segments.verbs.change.migrate.steps.log_staging import LogToStage, finish_log
from kafka_segments.verbs.change.migrate.steps.segment_staging import SegmentStager
from support.verbs.ended_processes import KILLED, is_ended

CHANGES = ("replace", "rename", "fsync", "unlink", "rmdir", "utime", "chmod", "mkdir", "link")
RULES = MigrationRules()


def planned(log: StagedLog, action: SegmentAction = SegmentAction.INDEXES) -> list[PlannedSegment]:
    """Plan all segments of a log."""
    paths = sorted(log.folder.glob("*.log"))
    bases = [int(path.stem) for path in paths]
    return [
        PlannedSegment(
            path, log.root, base, following, path.stat().st_size, path.stat().st_mtime_ns, action
        )
        for path, base, following in zip(paths, bases, [*bases[1:], None], strict=True)
    ]


def stage(log: StagedLog, segments: list[PlannedSegment], rules: MigrationRules = RULES) -> None:
    """Do what the executors do for one log."""
    stager = SegmentStager(rules)
    for segment in segments:
        stager.stage(segment)
    finish_log(LogToStage(segments, 0, 0), rules)


def _state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}


def _bytes(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def _end_after(steps: int) -> None:
    left = steps

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            if left == 0:
                os._exit(KILLED)
            left -= 1
            return function(*arguments, **options)

        return call

    for name in CHANGES:
        setattr(os, name, counted(getattr(os, name)))


def _ended_early(log: StagedLog, steps: int) -> bool:
    segments = planned(log, SegmentAction.CONVERT)
    return is_ended(lambda: _end_after(steps), lambda: stage(log, segments))


def main() -> None:
    every, log = int(sys.argv[1]), StagedLog(Path(sys.argv[2]), Path(sys.argv[3]))
    before = _state(log.folder)
    stage(log, planned(log, SegmentAction.CONVERT))
    staged = _bytes(log.other)
    shutil.rmtree(log.root)
    steps = 0
    while _ended_early(log, steps):
        assert _state(log.folder) == before
        assert log_state(log).side is Side.BEFORE
        assert not log.other.exists() or _bytes(log.other) == staged
        stage(log, planned(log, SegmentAction.CONVERT))
        assert _bytes(log.other) == staged
        assert log_state(log).message == "staged"
        assert sorted(entry.name for entry in log.root.iterdir()) == ["t-0", "t-0.json"]
        shutil.rmtree(log.root)
        steps += every
    print(steps)


if __name__ == "__main__":
    main()
