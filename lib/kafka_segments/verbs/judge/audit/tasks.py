"""Judge index files in the executors: segments and folders in, one row a file out."""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from kafka_segments.engine.derived.topic_sizes import TopicSizes, recovery_of
from kafka_segments.engine.frames.map_segments import map_packed
from kafka_segments.engine.limits import Load
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.errors import FileChangedError
from kafka_segments.files.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.files.storage.files import (
    OpenSegment,
    Place,
    first_line,
    open_segment,
    place,
)
from kafka_segments.kafka.broker_rules.index_files.judgement import (
    OFFSET_INDEX,
    TXN_INDEX,
    IndexKind,
    Judgement,
    LogFacts,
)
from kafka_segments.kafka.broker_rules.index_files.segment import (
    SEGMENT_SUFFIXES,
    judge_segment,
    unjudged,
)
from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind, SegmentRecovery
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.tier.tiered_names import tiered_log_of
from kafka_segments.kafka.wire.batches import Batches
from kafka_segments.verbs.judge.audit.decide.consequences import SegmentState, why_recovered
from kafka_segments.verbs.judge.audit.decide.tiered import consequence_anywhere
from kafka_segments.verbs.judge.audit.found_indexes import FoundIndexes, read_beside, read_upload
from kafka_segments.verbs.judge.audit.missing_segments import missing_rows
from kafka_segments.verbs.judge.audit.rows import AUDITED, LOG_COLUMNS, Row, audit_row, to_batches
from kafka_segments.verbs.judge.audit.tasks_transactions import UnfoldedSegment
from kafka_segments.verbs.judge.audit.tasks_uploads import upload_rows

SEGMENT_COLUMNS = (
    *LOG_COLUMNS,
    "name",
    "base_offset",
    "size_bytes",
    "is_active",
    "is_clean",
    "is_recovered",
    "next_base_offset",
    "log_start_offset",
    "cleaner_offset",
    "has_cleaner_offsets",
)


_MOST_INDEX_BYTES = 2**31 - 1  # the greatest segment.index.bytes


class AuditScope(NamedTuple):
    """What the executors need to know of an audit.

    ``follow_into``: see ``links_into``. ``sizes``: the index settings of each topic; None: those
    of ``recovery`` hold for all.
    """

    recovery: RecoveryOptions
    version: Version
    follow_into: tuple[str, ...] = ()
    sizes: TopicSizes | None = None


class SegmentAuditor:
    """Judges the files of segments one after another; each task makes one auditor."""

    def __init__(self, scope: AuditScope) -> None:
        self._scope = scope
        self._recoverers: dict[RecoveryOptions, SegmentRecoverer] = {}
        self._headers = ChunkReader(ChunkOptions(needs_body=False, check_crc=False))

    def audit(self, segment: Row) -> Iterator[Row]:
        """Yield the rows of one segment; a file that cannot be read is a row that says so."""
        log = place(segment["source"]).child(segment["relative_path"], segment["name"])
        is_tiered = tiered_log_of(log.path) is not None
        found = read_upload(log) if is_tiered else self._read_beside(log, segment)
        files = {suffix: found.files[suffix] for suffix in SEGMENT_SUFFIXES}
        judgements, state, recovery = self._judge(log, segment, files, is_tiered=is_tiered)
        hidden = {judgement.suffix for judgement in found.judged}
        judgements = [j for j in judgements if j.suffix not in hidden] + found.judged
        recovered = None if is_tiered else why_recovered(judgements, state, self._scope.version)
        txns = None
        for judgement in judgements:
            if judgement.suffix == TXN_INDEX:
                txns = judgement
                continue
            yield self._row(segment, found, judgement, state, recovered)
        if is_tiered:
            yield from upload_rows(segment, log.path, found, recovery, self._scope.version)
        elif isinstance(recovery, SegmentRecovery):
            yield from missing_rows(segment, recovery)
        summary = None
        if isinstance(recovery, SegmentRecovery) and not _is_unread(recovery):
            summary = recovery.summary(segment["base_offset"])
        if txns is None and summary is not None and not len(summary.producers.producers):
            return
        unfolded = UnfoldedSegment(
            found.names[TXN_INDEX],
            found.files[TXN_INDEX],
            txns,
            summary,
            state,
            recovered,
            (found.links or {}).get(TXN_INDEX),
        )
        yield {
            **{column: segment[column] for column in (*LOG_COLUMNS, "base_offset")},
            "unfolded": pickle.dumps(unfolded),
        }

    def _read_beside(self, log: Place, segment: Row) -> FoundIndexes:
        return read_beside(log, source=segment["source"], follow_into=self._scope.follow_into)

    def _row(
        self,
        segment: Row,
        found: FoundIndexes,
        judgement: Judgement,
        state: SegmentState,
        recovered: str | None,
    ) -> Row:
        data = found.files.get(judgement.suffix)
        return audit_row(
            segment,
            found.names[judgement.suffix],
            segment["base_offset"],
            None if data is None else len(data),
            judgement,
            consequence_anywhere(judgement, state, self._scope.version, recovered),
            (found.links or {}).get(judgement.suffix),
        )

    def _judge(
        self, log: Place, segment: Row, files: dict[str, bytes | None], *, is_tiered: bool
    ) -> tuple[list[Judgement], SegmentState, SegmentRecovery | str]:
        """Judge the files; return also the recovery of the log, or why it cannot be read."""
        base_offset, settings = segment["base_offset"], self._settings_of(segment)
        is_recovered = segment["is_recovered"] or files[OFFSET_INDEX] is None
        recoverer = self._recoverer(settings, is_recovered=is_recovered)
        is_open = segment["is_active"] and not segment["is_clean"]
        state = SegmentState(
            is_active=segment["is_active"],
            is_open=is_open,
            is_recovered=segment["is_recovered"],
            has_timestamps=True,
            segment_index_bytes=settings.segment_index_bytes,
            is_tiered=is_tiered,
        )
        try:
            with open_segment(log) as opened:
                recovery = recoverer.recover(
                    opened.read_into,
                    size_bytes=opened.size_bytes,
                    base_offset=base_offset,
                    written_bytes=opened.written_bytes,
                )
                found, judged = self._held_against(
                    opened, recovery, base_offset, files, state, settings.index_interval_bytes
                )
                opened.check_unchanged()
                return found, judged, recovery
        except (OSError, FileChangedError) as error:
            why = f"the .log cannot be read: {first_line(error)}"
            return unjudged(files, IndexKind.UNREADABLE, why), state, why

    def _settings_of(self, segment: Row) -> RecoveryOptions:
        """Return how a segment is recovered, by its topic's index settings."""
        log = segment["cluster"], segment["broker_id"], segment["topic"]
        return recovery_of(self._scope.recovery, self._scope.sizes, *log)

    def _recoverer(self, settings: RecoveryOptions, *, is_recovered: bool) -> SegmentRecoverer:
        """Return what recovers a segment; a start that does not recover it minds no limit."""
        if not is_recovered:
            settings = replace(settings, segment_index_bytes=_MOST_INDEX_BYTES)
        if settings not in self._recoverers:
            self._recoverers[settings] = SegmentRecoverer(settings)
        return self._recoverers[settings]

    def _held_against(
        self,
        opened: OpenSegment,
        recovery: SegmentRecovery,
        base_offset: int,
        files: dict[str, bytes | None],
        state: SegmentState,
        index_interval_bytes: int,
    ) -> tuple[list[Judgement], SegmentState]:
        found = recovery.damage
        damage = None if found is None else f"{found.message}, byte {found.position}"
        state = state._replace(has_timestamps=recovery.max_timestamp >= 0, log_damage=damage)
        log = LogFacts.of(
            recovery,
            base_offset=base_offset,
            index_interval_bytes=index_interval_bytes,
            is_open=state.is_open,
        )
        if log is None:
            why = f"a broker does not load this log: {damage}"
            return unjudged(files, IndexKind.LOG_DAMAGE, why), state

        def walk() -> Iterator[Batches]:
            for chunk in self._headers.read(opened.read_into, size_bytes=recovery.valid_bytes):
                yield chunk.batches

        return judge_segment(files, log, walk), state


def _is_unread(recovery: SegmentRecovery) -> bool:
    return recovery.damage is not None and recovery.damage.kind == DamageKind.TOO_LARGE


def audit_segments(scope: AuditScope, load: Load) -> Transform:
    """Judge the index files beside every segment, in tasks of about as many bytes each.

    ``load`` is how many segments there are, and their bytes. Few are judged in the driver.

    Needs: cluster, broker_id, log_dir, topic, partition, source, relative_path, name,
        base_offset, size_bytes, is_active, is_clean, is_recovered.
    Gives: ``AUDITED``: one row a file, and where ``unfolded`` is there one for the segment's
        ``.txnindex``, which ``fold_transactions`` turns into the file's.
    """

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        auditor = SegmentAuditor(scope)
        rows = (row for batch in batches for s in batch.to_pylist() for row in auditor.audit(s))
        yield from to_batches(rows, to_arrow_schema(AUDITED))

    def transform(segments: DataFrame) -> DataFrame:
        given = segments.select(*SEGMENT_COLUMNS)
        return map_packed(given, on_task, AUDITED, load)

    return transform
