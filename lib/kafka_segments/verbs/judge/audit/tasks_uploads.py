"""Judge manifests in tiered storage, and objects that belong to no segment, in the executors."""

from collections.abc import Iterator

from kafka_segments.files.folders.tiered_folder import Role, sort_objects
from kafka_segments.files.storage.files import list_folder, place
from kafka_segments.kafka.broker_rules.index_files.judgement import (
    SNAPSHOT,
    IndexKind,
    IndexVerdict,
    Judgement,
)
from kafka_segments.kafka.broker_rules.start.epochs import LogAtStart
from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.kafka.index.segment.recovered_segment import SegmentRecovery
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS
from kafka_segments.kafka.text.names import file_name
from kafka_segments.kafka.tier.tiered_names import (
    MANIFEST,
    parse_tiered_name,
    tiered_folder_of,
    tiered_log_of,
)
from kafka_segments.verbs.judge.audit.decide.log_files import judge_log_files
from kafka_segments.verbs.judge.audit.decide.tiered import judge_manifest, tiered_consequence
from kafka_segments.verbs.judge.audit.found_indexes import FoundIndexes
from kafka_segments.verbs.judge.audit.rows import Row, audit_row

_KINDS = {
    Role.COPY: IndexKind.SECOND_COPY,
    Role.NO_MANIFEST: IndexKind.NO_MANIFEST,
    Role.NO_LOG: IndexKind.NO_LOG,
    Role.STRANGE: IndexKind.NO_SEGMENT,
}


def upload_rows(
    segment: Row,
    path: str,
    found: FoundIndexes,
    log: SegmentRecovery | str,
    version: Version,
) -> Iterator[Row]:
    """Yield the rows of a tiered segment besides those of its three indexes.

    ``log`` is the recovery of its log, or why there is none.
    """
    base_offset = segment["base_offset"]
    judged = {judgement.suffix for judgement in found.judged}
    for suffix, file in ((SNAPSHOT, file_name(0, SNAPSHOT)), (LEADER_EPOCHS, LEADER_EPOCHS)):
        data = found.files[suffix]
        if suffix in judged or data is None:
            continue
        judgement = next(judge_log_files({file: data}, LogAtStart(), version)).judgement
        consequence = tiered_consequence(judgement)
        yield audit_row(
            segment, found.names[suffix], base_offset, len(data), judgement, consequence
        )
    name, folder = tiered_log_of(path), tiered_folder_of(path.rpartition("/")[0])
    if found.manifest is None or name is None or folder is None:
        return
    judgement, consequence = judge_manifest(
        found.manifest, folder=folder, name=name, stored_bytes=segment["size_bytes"], log=log
    )
    remote = found.manifest.segment
    size = len(found.files[MANIFEST] or b"")
    row = audit_row(segment, found.names[MANIFEST], base_offset, size, judgement, consequence)
    yield {**row, "end_offset": None if remote is None else remote.end_offset}


def lone_objects(log: Row) -> Iterator[Row]:
    """Yield a row for each object of a tiered partition's folder that is no part of a segment.

    Raises:
        SourceError: the folder cannot be listed.
    """
    folder = place(log["source"]).child(log["relative_path"])
    for found in sort_objects(folder, list_folder(folder)):
        kind = _KINDS.get(found.role)
        if kind is None:
            continue
        name = parse_tiered_name(found.entry.name)
        suffix = "" if name is None else name.suffix
        judgement = Judgement(suffix, IndexVerdict.ORPHAN, kind, found.reason)
        size = None if found.entry.is_folder else found.entry.size_bytes
        consequence = tiered_consequence(judgement)
        yield audit_row(log, found.entry.name, found.base_offset, size, judgement, consequence)
