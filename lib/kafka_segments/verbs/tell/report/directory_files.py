"""What the report takes from files: rows that verbs on directories printed as JSON.

Such a file is input like any other: each line has to be a row of one of these verbs. The rows have
no moment; the file's own time stands for it.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from kafka_segments.errors import UsageError
from kafka_segments.verbs.find.cleaner.decide import Stand
from kafka_segments.verbs.find.disk.decide.kinds import What
from kafka_segments.verbs.find.disk.decide.verdicts import MayGo
from kafka_segments.verbs.find.triage.decide import Section

VERDICT: Final = "verdict"
STEP: Final = "step"
READ: Final = "read"
_VERBS = "triage, disk, cleaner or records"


class Row(BaseModel):
    """A line of a file: what the page needs of it; more columns may be there."""

    model_config = ConfigDict(strict=True, frozen=True)


class TriageRow(Row):
    """A line of a page of `triage`."""

    cluster: str
    broker_id: int
    row: Section | Literal["verdict", "step"]
    log_dir: str
    place: str
    what: str
    bytes: int | None
    step: str


class KindRow(Row):
    """Of `disk`: bytes by what they are."""

    log_dir: str
    what: What
    files: int
    used_bytes: int
    size_bytes: int
    goes: str


class TopicRow(Row):
    """Of `disk --rows topics`."""

    log_dir: str
    topic: str
    partitions: int
    segments: int
    used_bytes: int
    last_day_least_bytes: int
    last_day_most_bytes: int


class FolderRow(Row):
    """Of `disk --rows folders`."""

    log_dir: str
    folder: str
    used_bytes: int
    may_go: MayGo
    why: str


class DiskRow(Row):
    """Of `disk --rows disks`."""

    log_dir: str
    used_bytes: int
    disk_bytes: int | None
    disk_used_bytes: int | None
    disk_free_bytes: int | None
    broker_runs: bool | None


class CleanerRow(Row):
    """Of `cleaner`: a compacted log."""

    log_dir: str
    folder: str
    stand: Stand
    why: str
    dirty_ratio: float | None
    cleanable_bytes: int | None
    dirty_bytes: int | None
    pass_freed_bytes: int | None


class RecordsRow(Row):
    """Of `records`: what cannot be read, a large batch, a record found, or what was read."""

    row: Literal["unreadable", "large batch", "record", "read"]
    topic: str
    partition: int
    offset: int | None
    seek_to: int | None
    why: str | None
    reason: str | None
    size_bytes: int | None
    records: int | None
    unreadable: int | None


AnyRow: TypeAlias = TriageRow | KindRow | TopicRow | FolderRow | DiskRow | CleanerRow | RecordsRow
_KINDS: tuple[type[AnyRow], ...] = (
    *(TriageRow, KindRow, TopicRow, FolderRow, DiskRow, CleanerRow, RecordsRow),
)
_LAST: dict[type[AnyRow], str] = {TriageRow: STEP, RecordsRow: READ}
"""Rows that stand last in a whole file."""


@dataclass(frozen=True)
class DirectoryAnswer:
    """The rows of a file, all of one kind, and when it was written, in ms since 1970."""

    path: str
    written_ms: int
    rows: Sequence[AnyRow]


def read_answers(paths: Iterable[Path]) -> list[DirectoryAnswer]:
    """Read files of rows.

    Raises:
        UsageError: one cannot be read, or is not what such a verb printed; names its line.
    """
    return [_read(path) for path in paths]


def _read(path: Path) -> DirectoryAnswer:
    try:
        with path.open("rb") as stream:
            written_ms = os.fstat(stream.fileno()).st_mtime_ns // 1_000_000
            rows = list(_rows(path, stream))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if not rows:
        raise UsageError(f"{path} is empty: it has no row that {_VERBS} printed")
    last = _LAST.get(type(rows[0]))
    if isinstance(rows[-1], TriageRow | RecordsRow) and rows[-1].row != last:
        raise UsageError(f"{path} is cut: its last line is no row `{last}`")
    return DirectoryAnswer(str(path), written_ms, rows)


def _rows(path: Path, lines: Iterable[bytes]) -> Iterator[AnyRow]:
    kind: type[AnyRow] | None = None
    for number, line in enumerate(lines, start=1):
        kind = kind or _kind_of(path, line)
        try:
            yield kind.model_validate_json(line)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, problem["loc"]))
            of_key = f"{place}: " if place else ""
            raise UsageError(
                f"{path}, line {number}, is no row as {_VERBS} prints it: {of_key}{problem['msg']}"
            ) from None


def _kind_of(path: Path, line: bytes) -> type[AnyRow]:
    """Return the kind whose columns a first line has."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    keys = row.keys() if isinstance(row, dict) else ()
    for kind in _KINDS:
        if kind.model_fields.keys() <= set(keys):
            return kind
    raise UsageError(
        f"{path}, line 1, is no row that {_VERBS} printed: give a file of `--output json`"
    )
