"""A small log is read once for what a start does with it, and costs the same beside many others."""

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest

from kafka_segments.files.node.log_dirs import find_log_dirs
from kafka_segments.files.storage.files import OpenSegment, Place, open_segment
from kafka_segments.kafka.broker_rules.start.log_start import decide_start
from kafka_segments.verbs.change.recovery.forecast import survey
from kafka_segments.verbs.change.recovery.kit import plan
from kafka_segments.verbs.change.recovery.kit.listing import plan_kit
from support.logs.strategies import v2_batch

if TYPE_CHECKING:
    from _typeshed import TraceFunction


def test_batches_that_are_counted_are_not_sampled_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "orders-0"
    log.mkdir()
    batches = b"".join(v2_batch(offset, [(1, b"key", b"value")]) for offset in range(3))
    (log / f"{0:020d}.log").write_bytes(batches)
    [found] = find_log_dirs([str(tmp_path)])
    start = decide_start(found.logs[0], is_clean=False)
    opened: list[Place] = []

    def counted(file: Place, *, reads_ahead: bool = True) -> AbstractContextManager[OpenSegment]:
        opened.append(file)
        return open_segment(file, reads_ahead=reads_ahead)

    monkeypatch.setattr(survey, "open_segment", counted)

    work = survey.Surveyor(is_full=False).survey(start).work

    assert (work.recovered_segments, work.recovered_batches) == (1, 3)
    assert len(opened) == 2  # for what was ever written of it, and to recover it


def test_a_kit_plans_each_of_many_logs_by_as_many_steps_as_each_of_few(tmp_path: Path) -> None:
    few, many = (_planned(tmp_path / f"{count}", count) for count in (10, 40))

    assert 0 < many < 4.1 * few


def _planned(log_dir: Path, count: int) -> int:
    """Plan a kit of logs that checkpoints name; return how many steps of Python that took."""
    for number in range(count):
        (log_dir / f"orders-{number}").mkdir(parents=True)
        (log_dir / f"orders-{number}" / f"{0:020d}.log").write_bytes(v2_batch(0, [(1, b"k", b"v")]))
    noted = "".join(f"orders {number} 0\n" for number in range(count))
    (log_dir / "recovery-point-offset-checkpoint").write_text(f"0\n{count}\n{noted}")
    steps = 0

    def traced(frame: FrameType, event: str, _argument: object) -> "TraceFunction | None":
        nonlocal steps
        if frame.f_code.co_filename != plan.__file__:
            return None
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        plan_kit([str(log_dir)], str(log_dir.parent / "kit"))
    finally:
        sys.settrace(before)
    return steps
