"""Write the files of one migrated segment into the unfinished folder of its log."""

import os
import shutil
from pathlib import Path
from typing import ClassVar

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.backups import FileState, is_there, state_of
from kafka_segments.files.changes.manifests import Manifest, read_manifest, write_manifest
from kafka_segments.files.changes.plain_files import check_folder, plain_status
from kafka_segments.files.segments.converter import SegmentConverter
from kafka_segments.files.storage.durable_files import durable_file, own_like, write_durably
from kafka_segments.files.storage.files import open_segment, place
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.text.moments import mtime_text
from kafka_segments.kafka.text.names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
)
from kafka_segments.verbs.change.migrate.decide.actions import SegmentAction
from kafka_segments.verbs.change.migrate.migrated_indexes import MigratedIndexes
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules, PlannedSegment

_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
Files = tuple[FileState, ...]


class StagedPart(Manifest):
    """What was noted when a segment was staged: its files before, and the new ones."""

    remedy: ClassVar[str] = (
        "nothing is staged: remove the log's .parts and .unfinished folders, then stage it again"
    )

    before: Files
    written: Files


class SegmentStager:
    """Stages segments one after another, with buffers that are made once."""

    def __init__(self, rules: MigrationRules) -> None:
        self._rules = rules
        self._recoverer = SegmentRecoverer(rules.recovery)
        self._indexes = MigratedIndexes(rules.without_timestamps)
        self._converter = SegmentConverter(rules.conversion)

    def stage(self, segment: PlannedSegment) -> None:
        """Write the files that a segment gets, and note them; skip one that was noted before.

        Raises:
            SetAsideError: the segment is not as it was planned.
            FileChangedError: the segment changed while it was read.
            OSError: it cannot be read, or a file cannot be written.
        """
        if is_staged(segment):
            return
        check_unchanged(segment)
        for folder in (segment.log.unfinished, segment.log.parts):
            folder.mkdir(parents=True, exist_ok=True)
            check_folder(folder)
        before = _states(segment.path.parent, segment.base_offset)
        written = self._write(segment) if segment.action is not SegmentAction.KEEP else ()
        check_unchanged(segment)
        write_manifest(_part(segment), StagedPart(before=before, written=written))

    def _write(self, segment: PlannedSegment) -> Files:
        log = segment.path
        if segment.action is SegmentAction.CONVERT:
            log = self._convert(segment)
        elif segment.action is SegmentAction.CUT:
            log = _cut(segment)
        recovery, files = self._indexes.make_of_log(self._recoverer, segment, log)
        if recovery.truncated_bytes:
            raise other_end(segment, recovery.valid_bytes)
        for suffix, data in files.items():
            target = segment.log.unfinished / file_name(segment.base_offset, suffix)
            write_durably(target, data, finish=lambda whole: own_like(whole, segment.path))
        return _states(segment.log.unfinished, segment.base_offset)

    def _convert(self, segment: PlannedSegment) -> Path:
        """Write the converted log, with the mtime of the first one."""
        target = segment.log.unfinished / segment.path.name
        with (
            open_segment(place(str(segment.path))) as opened,
            durable_file(
                target,
                size_bytes=None,
                finish=lambda whole: _look_like_first(whole, segment),
            ) as stream,
        ):
            made = self._converter.convert(
                opened.read_into,
                stream.write,
                size_bytes=opened.size_bytes,
                timestamp_ms=segment.timestamp_ms(self._rules),
            )
            if made.refusal is not None:
                raise SetAsideError(segment.path, f"it cannot be converted: {made.refusal.message}")
            if made.valid_bytes != segment.valid_bytes:
                raise other_end(segment, made.valid_bytes)
        return target


def _cut(segment: PlannedSegment) -> Path:
    """Write the log without the bytes that are not taken over, with the mtime of the first log."""
    target, size_bytes = segment.log.unfinished / segment.path.name, segment.valid_bytes
    with (
        segment.path.open("rb") as first,
        durable_file(
            target, size_bytes=size_bytes, finish=lambda whole: _look_like_first(whole, segment)
        ) as stream,
    ):
        shutil.copyfileobj(first, stream)
        stream.truncate(size_bytes)
    return target


def _look_like_first(path: Path, segment: PlannedSegment) -> None:
    own_like(path, segment.path)
    os.utime(path, ns=(segment.path.stat().st_atime_ns, segment.mtime_ns))


def other_end(segment: PlannedSegment, valid_bytes: int) -> SetAsideError:
    """Return the error for a log whose readable end is no longer where it was planned."""
    return SetAsideError(
        segment.path,
        f"it can be read up to byte {valid_bytes}, up to {segment.valid_bytes} when it was planned:"
        " plan again",
    )


def is_staged(segment: PlannedSegment) -> bool:
    """Tell whether an earlier run has written the files that a segment gets."""
    return segment.log.other.exists() or _part(segment).exists()


def read_part(segment: PlannedSegment) -> StagedPart:
    """Return what was noted when a segment was staged; the new files are there.

    Raises:
        SetAsideError: the segment is not staged, or the note cannot be used.
    """
    path = _part(segment)
    if not is_there(path):
        raise SetAsideError(segment.path, "it is not staged: run `migrate stage` again")
    part = read_manifest(path, StagedPart)
    names = {file_name(segment.base_offset, suffix) for suffix in _SUFFIXES}
    for folder, file in (
        *((segment.path.parent, file) for file in part.before),
        *((segment.log.unfinished, file) for file in part.written),
    ):
        if file.name not in names:
            raise SetAsideError(path, f"{file.name!a} is none of its files; {part.remedy}")
        if plain_status(folder / file.name).st_size != file.size_bytes:
            raise SetAsideError(folder / file.name, f"not as {path} says; {part.remedy}")
    return part


def check_unchanged(segment: PlannedSegment) -> None:
    """Check that a log has the size and mtime that it was planned with.

    Raises:
        SetAsideError: it has changed, or is gone.
    """
    try:
        stat = segment.path.stat()
    except FileNotFoundError:
        raise SetAsideError(segment.path, "it is gone since it was planned: plan again") from None
    if (stat.st_size, stat.st_mtime_ns) != (segment.size_bytes, segment.mtime_ns):
        raise SetAsideError(
            segment.path,
            f"it has {stat.st_size} bytes and mtime {mtime_text(stat.st_mtime_ns)},"
            f" {segment.size_bytes} and {mtime_text(segment.mtime_ns)} when it was planned: plan"
            " again",
        )


def _part(segment: PlannedSegment) -> Path:
    return segment.log.parts / f"{segment.base_offset}.json"


def _states(folder: Path, base_offset: int) -> Files:
    paths = (folder / file_name(base_offset, suffix) for suffix in _SUFFIXES)
    return tuple(state_of(path) for path in paths if path.is_file())
