"""Finish the staged folder of a log: add the files of the whole log, and the manifest."""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.backups import FileState, state_of
from kafka_segments.files.changes.folder_exchange import check_exchange
from kafka_segments.files.changes.manifests import write_manifest
from kafka_segments.files.storage.durable_files import (
    copy_durably,
    name_folder,
    own_like,
    remove_temporaries,
    write_durably,
)
from kafka_segments.files.storage.files import open_segment, place
from kafka_segments.files.storage.local_folder import as_text, is_text
from kafka_segments.kafka.index.log.load import LogLoad
from kafka_segments.kafka.index.log.loading import LoadOptions
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.transaction_index import encode_transaction_index
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS, PARTITION_METADATA
from kafka_segments.kafka.text.names import (
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_name,
    parse_segment_name,
)
from kafka_segments.kafka.text.topic_ids import encode_partition_metadata
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules, PlannedSegment
from kafka_segments.verbs.change.migrate.staged_log import (
    FolderFiles,
    LogManifest,
    StagedLog,
    log_state,
    manifest_of,
)
from kafka_segments.verbs.change.migrate.steps.segment_staging import (
    check_unchanged,
    other_end,
    read_part,
)

_OF_PRODUCERS = (TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX)


class LogToStage(NamedTuple):
    """All planned segments of a log, in order, and what is known of the log.

    ``topic_id``: for a new ``partition.metadata``; None: none is made.
    """

    segments: Sequence[PlannedSegment]
    log_start_offset: int
    now_ms: int
    topic_id: str | None = None

    @property
    def log(self) -> StagedLog:
        """Return the folders of the log."""
        return self.segments[0].log

    @property
    def carried(self) -> list[Path]:
        """Return the files of the first folder that are still right in the staged one.

        Where segments are cut, the files about producers and transactions are not.
        """
        is_cut = any(segment.cut_bytes for segment in self.segments)
        entries = sorted(self.log.folder.iterdir())
        return [entry for entry in entries if not (is_cut and entry.name.endswith(_OF_PRODUCERS))]


def finish_log(log: LogToStage, rules: MigrationRules) -> LogManifest:
    """Complete the staged folder of a log and give it its name; leave a finished one alone.

    1. Closed logs that do not change are hard links to the same file. All other files are copies: a
       broker writes only to the active log and to the small files.
    2. ``.txnindex``, ``.snapshot``, ``leader-epoch-checkpoint`` and ``partition.metadata`` are
       added where the log has none of the kind, as a broker's load of the log makes them. If
       segments of the log are cut, the first two are made anew.
    3. No staged segment has bytes that recovery would cut off: after a clean stop a broker trusts
       the index files, and a consumer would run into those bytes. Checksums are compared where
       index files are made, and by ``SegmentProver``.
    4. The manifest exists before the folder has its name.

    Raises:
        SetAsideError: the log is not as planned, or a broker would not load it.
        OSError: the file system refused a step; run it again.
    """
    staged = log.log
    if log_state(staged).is_staged:
        shutil.rmtree(staged.parts, ignore_errors=True)
        return manifest_of(staged)
    _check_folder(log)
    check_exchange(staged.parts)
    remove_temporaries(staged.root, name=staged.manifest.name)
    remove_temporaries(staged.unfinished)
    parts = [read_part(segment) for segment in log.segments]
    known = {file.name: file for part in parts for file in part.before}
    written = {file.name: file for part in parts for file in part.written}
    _carry_over(log, written)
    _add_state_files(log, rules)
    own_like(staged.unfinished, staged.folder)
    before = _folder_files(staged.folder, known)
    carried = {name: file for name, file in known.items() if name not in written}
    after = _folder_files(staged.unfinished, {**carried, **written})
    for segment in log.segments:
        check_unchanged(segment)
    manifest = LogManifest(folder=str(staged.folder), before=before, after=after)
    name_folder(
        staged.unfinished, staged.other, note=lambda: write_manifest(staged.manifest, manifest)
    )
    shutil.rmtree(staged.parts)
    return manifest


def _check_folder(log: LogToStage) -> None:
    folder = log.log.folder
    planned = {segment.path.name for segment in log.segments}
    for entry in sorted(folder.iterdir()):
        if not entry.is_file() or entry.is_symlink():
            raise SetAsideError(
                entry, "no plain file: move it out of the log's folder, then stage again"
            )
        if not is_text(entry.name):
            raise SetAsideError(folder, f"{as_text(entry.name)}: its name is no UTF-8, rename it")
        if parse_segment_name(entry.name) is not None and entry.name not in planned:
            raise SetAsideError(entry, "it was not there when its log was planned: plan again")


def _carry_over(log: LogToStage, written: dict[str, FileState]) -> None:
    staged, active = log.log, log.segments[-1].path.name
    for entry in log.carried:
        target = staged.unfinished / entry.name
        if entry.name in written:
            continue
        if LOG_SUFFIX in entry.name and entry.name != active:
            target.unlink(missing_ok=True)
            os.link(entry, target)
            continue
        copy_durably(entry, target)
        own_like(target, entry)


def _add_state_files(log: LogToStage, rules: MigrationRules) -> None:
    """Write the files that concern several segments, where the log has none of the kind."""
    staged = log.log
    names = {entry.name for entry in log.carried}
    first = log.segments[0].path
    has_snapshots = any(name.endswith(SNAPSHOT_SUFFIX) for name in names)
    for name, data in _load(log, rules):
        is_there = has_snapshots if name.endswith(SNAPSHOT_SUFFIX) else name in names
        if not is_there:
            write_durably(
                staged.unfinished / name, data, finish=lambda whole: own_like(whole, first)
            )


def _load(log: LogToStage, rules: MigrationRules) -> Iterator[tuple[str, bytes]]:
    """Load the staged segments as a broker does; yield the log's files by name."""
    if log.topic_id is not None:
        yield PARTITION_METADATA, encode_partition_metadata(log.topic_id)
    options = LoadOptions(
        now_ms=log.now_ms,
        expiration_ms=rules.producer_id_expiration_ms,
        log_start_offset=log.log_start_offset,
    )
    fold = LogLoad(options, is_unclean=False)
    settings = RecoveryOptions(rules.index_interval_bytes, rules.segment_index_bytes, False)
    recoverer = SegmentRecoverer(settings)
    for segment in log.segments:
        staged = log.log.unfinished / segment.path.name
        with open_segment(place(str(staged))) as opened:
            recovery = recoverer.recover(
                opened.read_into, size_bytes=opened.size_bytes, base_offset=segment.base_offset
            )
        verdict = fold.take(recovery.summary(segment.base_offset))
        if verdict.damage is not None:
            raise SetAsideError(segment.path, f"{verdict.damage.message}: its log is left alone")
        if recovery.truncated_bytes:
            raise other_end(segment, recovery.valid_bytes)
        aborted = encode_transaction_index(verdict.aborted)
        if aborted:
            yield file_name(segment.base_offset, TXN_INDEX_SUFFIX), aborted
        if verdict.snapshot is not None:
            yield file_name(segment.base_offset, SNAPSHOT_SUFFIX), verdict.snapshot
    files = fold.finish()
    if files.refused is not None:
        raise SetAsideError(log.log.folder, f"{files.refused.message}: its log is left alone")
    for offset, data in files.snapshots.items():
        yield file_name(offset, SNAPSHOT_SUFFIX), data
    if files.leader_epochs is not None:
        yield LEADER_EPOCHS, files.leader_epochs


def _folder_files(folder: Path, known: dict[str, FileState]) -> FolderFiles:
    """Return the files of a folder; do not read ``known`` ones of the same size and mtime."""
    files = []
    for entry in sorted(folder.iterdir()):
        stat, file = entry.stat(), known.get(entry.name)
        if file is None or (file.size_bytes, file.mtime_ns) != (stat.st_size, stat.st_mtime_ns):
            file = state_of(entry)
        files.append(file)
    return FolderFiles(inode=folder.stat().st_ino, files=tuple(files))
