"""Judge what lies in partitions' folders beside the segments' own files, in the executors."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.errors import SourceError
from kafka_segments.files.changes.index_files import MOST_INDEX_BYTES
from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.storage.files import Place, first_line, place, read_if_there
from kafka_segments.files.storage.links import OddFile, look_at
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.kafka.broker_rules.index_files.judgement import (
    IndexKind,
    IndexVerdict,
    Judgement,
)
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS
from kafka_segments.kafka.text.names import parse_segment_name
from kafka_segments.kafka.tier.tiered_names import tiered_folder_of
from kafka_segments.verbs.judge.audit.decide.consequences import Consequence, Effect
from kafka_segments.verbs.judge.audit.decide.log_files import (
    LogFile,
    is_judged_whole,
    judge_log_files,
    orphans,
)
from kafka_segments.verbs.judge.audit.decide.odd_files import (
    judge_odd_file,
    odd_log_file_consequence,
)
from kafka_segments.verbs.judge.audit.log_at_start import has_leader_epochs, read_log_at_start
from kafka_segments.verbs.judge.audit.missing_segments import lost_log
from kafka_segments.verbs.judge.audit.rows import AUDITED, LOG_COLUMNS, Row, audit_row, to_batches
from kafka_segments.verbs.judge.audit.tasks import AuditScope
from kafka_segments.verbs.judge.audit.tasks_uploads import lone_objects

_DIGITS = 20
_NOTED = ("is_clean", "recovery_point", "log_start_offset", "high_watermark")


def audit_folders(scope: AuditScope) -> Transform:
    """Judge what lies in partitions' folders beside the segments' own files.

    Needs: cluster, broker_id, log_dir, topic, partition, source, relative_path, is_clean,
        recovery_point, log_start_offset, high_watermark, reason (null, or why the folder could not
        be listed).
    Gives: ``AUDITED``, one row for each file.
    """

    def rows_of(log: Row) -> Iterator[Row]:
        if log["reason"] is not None:
            yield _unlisted(log, log["reason"])
        else:
            yield from audit_folder(log, scope)

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for log in batch.to_pylist() for row in rows_of(log))
        yield from to_batches(rows, to_arrow_schema(AUDITED))

    return lambda logs: map_rows(logs.select(*LOG_COLUMNS, *_NOTED, "reason"), on_task, AUDITED)


def audit_folder(log: Row, scope: AuditScope) -> Iterator[Row]:
    """Yield the rows of a folder's files that belong to no segment that is there."""
    folder = place(log["source"]).child(log["relative_path"])
    try:
        if tiered_folder_of(folder.path) is not None:
            yield from lone_objects(log)
            return
        entries = entries_of(log["source"], log["relative_path"], follow_into=scope.follow_into)
    except SourceError as error:
        yield _unlisted(log, error.reason)
        return
    odd = dict(_odd_files(log, folder, entries, scope.follow_into))
    for name, file in odd.items():
        yield _odd_row(log, name, file)
    gone = {name for name, file in odd.items() if file.kind == IndexKind.DANGLING_LINK}
    files = {entry.name: entry for entry in entries if not entry.is_folder}
    yield from lost_log(log, files.keys() | odd.keys())
    for found in orphans((files.keys() | odd.keys()) - gone, scope.version):
        yield _file_row(log, found, files[found.name].size_bytes)
    read: dict[str, bytes] = {}
    for name in filter(is_judged_whole, files.keys() - odd.keys()):
        try:
            data = read_if_there(folder.child(name), most_bytes=MOST_INDEX_BYTES)
        except OSError as error:
            judgement = Judgement(
                name, IndexVerdict.UNJUDGED, IndexKind.UNREADABLE, first_line(error)
            )
            unknown = Consequence(Effect.UNKNOWN, "it cannot be read", "look at its disk")
            yield audit_row(log, name, None, files[name].size_bytes, judgement, unknown)
            continue
        if data is not None:
            read[name] = data
    sizes = {name: entry.size_bytes for name, entry in files.items()}
    start = read_log_at_start(log, folder, sizes)

    def has_epochs() -> bool | None:
        if LEADER_EPOCHS in (files.keys() | odd.keys()) - read.keys():
            return None  # there is a file, judged above
        return has_leader_epochs(folder, start, sizes)

    for found in judge_log_files(read, start, scope.version, has_epochs):
        link = files[found.name].link if found.name in files else None
        yield _file_row(log, found, len(read.get(found.name, b"")), link)


def _odd_files(
    log: Row, folder: Place, entries: Iterable[FileEntry], follow_into: tuple[str, ...]
) -> Iterator[tuple[str, OddFile]]:
    """Yield the paths that are no plain files where a broker looks for one; no index files."""
    for entry in entries:
        is_odd = entry.oddity is not None or entry.is_folder
        if is_odd and (is_judged_whole(entry.name) or parse_segment_name(entry.name) is not None):
            path = folder.child(entry.name)
            file = look_at(path, source=log["source"], follow_into=follow_into)
            if file is not None:
                yield entry.name, file


def _odd_row(log: Row, name: str, file: OddFile) -> Row:
    number = name[:_DIGITS]
    base_offset = int(number) if number.isdecimal() else None
    suffix = name if base_offset is None else name[_DIGITS:]
    judgement = judge_odd_file(suffix, IndexKind(file.kind), file.reason)
    return audit_row(log, name, base_offset, None, judgement, odd_log_file_consequence(judgement))


def _file_row(log: Row, found: LogFile, size_bytes: int, link: str | None = None) -> Row:
    return audit_row(
        log, found.name, found.base_offset, size_bytes, found.judgement, found.consequence, link
    )


def _unlisted(log: Row, reason: str) -> Row:
    judgement = Judgement(
        "", IndexVerdict.UNJUDGED, IndexKind.UNREADABLE, f"not looked into: {reason}"
    )
    unknown = Consequence(Effect.UNKNOWN, "nothing is known of what lies there", "look at it")
    return audit_row(log, "", None, None, judgement, unknown)
