"""A small log is read once for what a start does with it."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kafka_segments.files.storage.files import OpenSegment, Place, open_segment
from kafka_segments.verbs.change.recovery.decide.starts import decide_start
from kafka_segments.verbs.change.recovery.folders import find_log_dirs
from kafka_segments.verbs.change.recovery.forecast import survey
from support.logs.strategies import v2_batch


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
