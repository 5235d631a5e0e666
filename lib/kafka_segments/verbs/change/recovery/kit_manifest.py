"""What a kit says of its log directories and logs, as JSON beside the files that it holds.

A kit is a folder::

    manifest.json              what it was made of; without it the kit is not finished
    <number>/                  a log directory, by its place in manifest.json
        <log>.json             a log: what was seen of it, what is to be put and cut
        <log>/<name>           a file to put into the log's folder
    kept/<number>/             what ``recovery apply`` found there before, for a rollback

``storage.manifests`` reads them. What a log's manifest says must fit together, too
(``_misfit``).
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

from pydantic import model_validator

from kafka_segments.errors import SetAsideError, UsageError
from kafka_segments.files.changes.manifests import (
    AbsolutePath,
    Count,
    Int64,
    Manifest,
    Name,
    Part,
    Sha256,
    read_manifest,
    write_manifest,
)
from kafka_segments.files.changes.plain_files import check_folder
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS
from kafka_segments.kafka.text.names import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    FolderState,
    file_name,
    parse_partition_folder,
)

MANIFEST = "manifest.json"
KEPT = "kept"
_SUFFIX = ".json"
_ALWAYS = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
_MADE_AGAIN = "nothing of it is applied: make another kit"


class KitState(StrEnum):
    """What a kit does with a log.

    ``LEFT``: the broker has no work there that a kit could do. ``REFUSED``: it has, but must do it
    itself.
    """

    READY = "ready"
    LEFT = "left"
    REFUSED = "refused"


class SeenSegment(Part):
    """A segment as it was read; ``sha256`` is None where no digest was asked for."""

    base_offset: Count
    size_bytes: Count
    mtime_ns: Int64
    sha256: Sha256 | None


class NewFile(Part):
    """A file that belongs into the log's folder."""

    name: Name
    size_bytes: Count
    sha256: Sha256


class Cut(Part):
    """The torn tail of the last segment, which recovery cuts off.

    ``records`` is the sum of what the headers of the torn batches claim, where there are headers.
    """

    base_offset: Count
    position: Count
    size_bytes: Count
    records: Count
    reason: str


class LogKit(Manifest):
    """What a kit says of one log.

    ``segments`` are those that were read, up to the last one; ``recovery_point`` is the broker's,
    ``next_recovery_point`` the verified end of the log. ``message`` says why a log is not ready.
    """

    remedy: ClassVar[str] = _MADE_AGAIN

    log: Name
    topic: str
    partition: Count
    state: KitState
    message: str = ""
    segments: tuple[SeenSegment, ...] = ()
    files: tuple[NewFile, ...] = ()
    cut: Cut | None = None
    recovery_point: Int64 = 0
    next_recovery_point: Int64 = 0

    @property
    def read_bytes(self) -> int:
        """Return the bytes of the segments that were read."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def end_bytes(self) -> int:
        """Return the bytes of the last segment, without its torn tail."""
        return self.segments[-1].size_bytes - (0 if self.cut is None else self.cut.size_bytes)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        misfit = _misfit(self) if self.state == KitState.READY else None
        if misfit is not None:
            raise ValueError(misfit)
        return self


def _misfit(log: LogKit) -> str | None:
    """Return what contradicts itself in a kit's log that is ready; None: nothing does."""
    bases, names = [segment.base_offset for segment in log.segments], [f.name for f in log.files]
    if parse_partition_folder(log.log) != (log.topic, log.partition, FolderState.LIVE):
        return f"topic, partition: {log.topic!a}, {log.partition}, but the log is {log.log!a}"
    if not bases or bases != sorted(set(bases)):
        return f"segments: {len(bases)} base offsets that do not rise"
    if not 0 <= log.recovery_point <= log.next_recovery_point:
        points = f"{log.recovery_point}, next_recovery_point: {log.next_recovery_point}"
        return f"recovery_point: {points}, no higher one after it"
    if log.cut is not None and not _fits_segment(log.cut, log.segments[-1]):
        cut, last = log.cut, log.segments[-1]
        return (
            f"cut: {cut.size_bytes} bytes from byte {cut.position} of segment {cut.base_offset},"
            f" but the last segment is {last.base_offset} and has {last.size_bytes}"
        )
    if (log.end_bytes > 0) != (log.next_recovery_point > bases[-1]):
        return (
            f"next_recovery_point: {log.next_recovery_point}, but segment {bases[-1]} has"
            f" {log.end_bytes} bytes"
        )
    if len(set(names)) < len(names):
        return f"files: {max(names, key=names.count)!a} stands there twice"
    return _wrong_file(log) or _lacking_file(log)


def _fits_segment(cut: Cut, last: SeenSegment) -> bool:
    is_last = cut.base_offset == last.base_offset
    return is_last and cut.size_bytes > 0 and cut.position + cut.size_bytes == last.size_bytes


def _wrong_file(log: LogKit) -> str | None:
    end = log.next_recovery_point
    bases = {*(segment.base_offset for segment in log.segments), end}
    suffixes = (*INDEX_SUFFIXES, SNAPSHOT_SUFFIX)
    allowed = {LEADER_EPOCHS, *(file_name(base, each) for base in bases for each in suffixes)}
    new_segment = file_name(end, LOG_SUFFIX) if log.end_bytes else None
    for file in log.files:
        if file.name == new_segment and not file.size_bytes:
            continue
        if file.name not in allowed and not _is_snapshot_between(file.name, min(bases), end):
            return f"files: {file.name!a} is no file that a kit puts into this log"
    return None


def _is_snapshot_between(name: str, first: int, end: int) -> bool:
    """Tell whether a name is that of a snapshot at an offset of the log.

    A load writes one where it ends early, and a broker deletes it where no segment begins.
    """
    digits = name.removesuffix(SNAPSHOT_SUFFIX)
    if not (digits.isdecimal() and digits.isascii()):
        return False
    return first <= int(digits) <= end and name == file_name(int(digits), SNAPSHOT_SUFFIX)


def _lacking_file(log: LogKit) -> str | None:
    """Return which file is missing that a broker would look for from the recovery point on."""
    bases = [segment.base_offset for segment in log.segments]
    point = max((base for base in bases if base <= log.recovery_point), default=bases[0])
    needed = [file_name(base, each) for base in bases if base >= point for each in _ALWAYS]
    if log.end_bytes:
        needed += [file_name(log.next_recovery_point, each) for each in (*_ALWAYS, LOG_SUFFIX)]
    names = {file.name for file in log.files}
    lacking = [name for name in needed if name not in names]
    return f"files: {lacking[0]} is missing" if lacking else None


class KitManifest(Manifest):
    """What a kit was made of; ``logs`` are those of each directory, ``made_ms`` is since 1970."""

    remedy: ClassVar[str] = (
        "make another kit, or roll back with the release that applied it, whose files lie in"
        f" {KEPT}/"
    )

    log_dirs: tuple[AbsolutePath, ...]
    logs: tuple[tuple[Name, ...], ...]
    made_ms: Int64
    has_digests: bool

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(self.logs) != len(self.log_dirs):
            raise ValueError(f"logs: of {len(self.logs)} log_dirs, there are {len(self.log_dirs)}")
        for names in (self.log_dirs, *self.logs):
            if len(set(names)) < len(names):
                raise ValueError(f"{max(names, key=names.count)!a} is named twice")
        return self


class NamedLog(NamedTuple):
    """A log that a kit names, and what the kit says of it, or why that cannot be used."""

    name: str
    kit: LogKit | SetAsideError


def folder_of(kit: Path, number: int) -> Path:
    """Return the folder of a log directory in a kit."""
    return kit / str(number)


def kept_folder(kit: Path, number: int) -> Path:
    """Return where ``recovery apply`` keeps what it found in a log directory."""
    return kit / KEPT / str(number)


def write_kit(kit: Path, manifest: KitManifest) -> None:
    """Write a kit's manifest: from now on the kit can be applied."""
    write_manifest(kit / MANIFEST, manifest)


def read_kit(kit: Path) -> KitManifest:
    """Return a kit's manifest.

    Raises:
        UsageError: the folder holds no finished kit, one of another release, or a manifest that
            cannot be used.
    """
    if not (kit / MANIFEST).is_file():
        raise UsageError(
            f"{kit} has no {MANIFEST}: it is no kit, or `recovery kit` did not finish it"
        )
    try:
        return read_manifest(kit / MANIFEST, KitManifest)
    except SetAsideError as error:
        raise UsageError(str(error)) from None


def write_log(folder: Path, log: LogKit) -> None:
    """Write what a kit says of a log into the folder of its log directory, in one line."""
    write_manifest(folder / f"{log.log}{_SUFFIX}", log, is_synced=False, indent=None)


def read_log(folder: Path, name: str) -> LogKit:
    """Return what a kit says of a log.

    Raises:
        SetAsideError: it cannot be used, or is of another log.
    """
    path = folder / f"{name}{_SUFFIX}"
    log = read_manifest(path, LogKit)
    if log.log != name:
        raise SetAsideError(path, f"log: found {log.log!a}, {name!a} expected; {_MADE_AGAIN}")
    return log


def read_logs(folder: Path, names: Sequence[str]) -> Iterator[NamedLog]:
    """Yield what a kit says of the logs of a log directory.

    Those that ``manifest.json`` names come first, then others for which there is a file.
    """
    try:
        check_folder(folder)
    except SetAsideError as error:
        yield from (NamedLog(name, error) for name in names)
        return
    for name in names:
        try:
            yield NamedLog(name, read_log(folder, name))
        except SetAsideError as error:
            yield NamedLog(name, error)
    named = frozenset(names)
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        if path.stem not in named:
            reason = f"{MANIFEST} does not name this log; {_MADE_AGAIN}"
            yield NamedLog(path.stem, SetAsideError(path, reason))
