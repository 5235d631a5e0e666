"""A log of a plan of retention: the files that go, where they go, and back."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import model_validator

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes import set_aside
from kafka_segments.files.changes.backups import is_there
from kafka_segments.files.changes.manifests import Count, Int64, Part, Sha256
from kafka_segments.files.changes.plan_rows import PlannedFile, planned_row
from kafka_segments.files.changes.set_aside import SegmentFile
from kafka_segments.kafka.text.names import METADATA_TOPIC, FolderState

_TABLE = "retention_plans"
Row = Mapping[str, Any]


class MoveStatus(StrEnum):
    """What became of the planned segments of a log, or would become of them."""

    REFUSED = "refused"
    MOVED = "moved"
    WOULD_MOVE = "would move"
    ALREADY_MOVED = "already moved"
    BROUGHT_BACK = "brought back"
    WOULD_BRING_BACK = "would bring back"
    UNTOUCHED = "untouched"


@dataclass(frozen=True)
class LogMove:
    """What was done, or would be done, with the planned segments of one log."""

    log: str
    segments: int
    files: int
    bytes: int
    status: MoveStatus
    reason: str


class _File(Part):
    name: str
    size_bytes: Count
    mtime_ns: Int64


class _PlannedSegment(PlannedFile):
    """A row of a plan; ``set_aside`` knows which names a segment's files have."""

    states: ClassVar[tuple[FolderState, ...]] = (FolderState.LIVE, FolderState.FUTURE)

    size_bytes: Count
    files: list[_File]
    digests: dict[str, Sha256] | None
    problem: str | None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        names = [file.name for file in self.files]
        if self.problem is None and names[-1:] != [os.path.basename(self.path)]:
            raise ValueError("files: its .log is not the last one")
        if not (self.digests or {}).keys() <= set(names):
            raise ValueError("digests: of a file that is none of the segment's")
        return self


class PlannedLog(NamedTuple):
    """The files of a log that go to ``aside``; ``problem`` says why none of them may.

    ``digests``: the SHA-256 of files by name, as planned; empty: planned without.
    """

    log_dir: Path
    folder: Path
    aside: Path
    files: list[SegmentFile]
    digests: dict[str, str]
    problem: str | None

    def move(self, status: MoveStatus, reason: str) -> LogMove:
        """Return what became of the log, and why."""
        segments = len({file.base_offset for file in self.files})
        total = sum(file.size_bytes for file in self.files)
        return LogMove(str(self.folder), segments, len(self.files), total, status, reason)

    def apply(self, *, execute: bool) -> LogMove:
        """Move the planned files to ``aside``, or say what would be moved.

        Raises:
            SetAsideError: the log is not as planned.
            OSError: the file system refused a step; run it again.
        """
        if self.problem is not None:
            return self.move(MoveStatus.REFUSED, self.problem)
        to_aside = f"to {self.aside}"
        if set_aside.is_set_aside(self.folder, self.aside, self.files):
            return self.move(MoveStatus.ALREADY_MOVED, to_aside)
        if not execute:
            set_aside.check_planned(self.folder, self.aside, self.files, self.digests)
            return self.move(MoveStatus.WOULD_MOVE, to_aside)
        set_aside.set_aside(self.folder, self.aside, self.files, self.digests)
        return self.move(MoveStatus.MOVED, to_aside)

    def roll_back(self, *, execute: bool) -> LogMove:
        """Bring back what ``apply`` moved, or say what would come back.

        Raises:
            SetAsideError: see ``set_aside.bring_back``.
            OSError: the file system refused a step; run it again.
        """
        if not is_there(self.aside):
            return self.move(MoveStatus.UNTOUCHED, f"nothing in {self.aside}")
        if not execute:
            set_aside.check_back(self.folder, self.aside, self.files)
            return self.move(MoveStatus.WOULD_BRING_BACK, f"from {self.aside}")
        set_aside.bring_back(self.folder, self.aside, self.files)
        with suppress(OSError):  # other logs of the plan are still there
            self.aside.parent.rmdir()
        return self.move(MoveStatus.BROUGHT_BACK, f"from {self.aside}")


def moved(
    rows: Sequence[Row],
    aside: Path | None,
    act: Callable[[PlannedLog], LogMove],
    refusal: str | None,
) -> LogMove:
    """Act on a log; return what became of it, be it a refusal.

    ``rows``: those of its segments in the plan. ``aside``: see ``MoveOptions``. ``refusal``: why
    its log directory is left alone; None: it is not.
    """
    if refusal is not None:
        return _refused(rows, refusal)
    try:
        return act(planned_log(rows, aside))
    except (SetAsideError, OSError) as error:
        return _refused(rows, str(error))


def _refused(rows: Sequence[Row], reason: str) -> LogMove:
    sizes = [file["size_bytes"] for row in rows for file in row["files"]]
    counts = len(rows), len(sizes), sum(sizes)
    return LogMove(folder_of(rows[0]), *counts, MoveStatus.REFUSED, reason)


def folder_of(row: Row) -> str:
    """Return the folder of a planned segment."""
    return os.path.dirname(str(row["path"]))


def planned_log(rows: Sequence[Row], aside: Path | None) -> PlannedLog:
    """Return what rows of a plan, those of one log's segments, say.

    Raises:
        SetAsideError: see ``planned_row``.
    """
    segments = [planned_row(row, _PlannedSegment, table=_TABLE) for row in rows]
    segments.sort(key=lambda segment: segment.base_offset)
    first = segments[0]
    folder, log_dir = Path(first.folder), Path(first.log_dir)
    if aside is None:
        root = log_dir.with_name(f"{log_dir.name}.set-aside") / first.plan_id
    else:
        root = aside / first.plan_id / first.log_dir.lstrip("/")
    digests = {name: digest for each in segments for name, digest in (each.digests or {}).items()}
    problems = [f"{each.path}: {each.problem}" for each in segments if each.problem is not None]
    files = [
        SegmentFile(segment.base_offset, file.name, file.size_bytes, file.mtime_ns)
        for segment in segments
        for file in segment.files
    ]
    if first.topic == METADATA_TOPIC:  # planned by an older release
        problems = ["KRaft's own log goes by other rules: plan again"]
    problem = problems[0] if problems else None
    return PlannedLog(log_dir, folder, root / folder.name, files, digests, problem)
