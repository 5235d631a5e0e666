"""Rows of an audit about segments of a broker's log that are missing."""

from collections.abc import Iterable, Iterator

from kafka_segments.kafka.broker_rules.gaps import Cleaned, told_gap
from kafka_segments.kafka.broker_rules.index_files.judgement import (
    LOG,
    IndexKind,
    IndexVerdict,
    Judgement,
)
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind, SegmentRecovery
from kafka_segments.kafka.text.checkpoints import HIGH_WATERMARK
from kafka_segments.kafka.text.names import LOG_SUFFIX, file_name, parse_segment_name
from kafka_segments.verbs.judge.audit.decide.consequences import Consequence, Effect
from kafka_segments.verbs.judge.audit.rows import Row, audit_row

_PUT_BACK = "put the missing files back from a backup or another replica"
_UNSEEN = Consequence(
    Effect.NOT_SERVED,
    "the broker starts, and does not serve these offsets: consumers go on behind them",
    _PUT_BACK,
)


def missing_rows(segment: Row, recovery: SegmentRecovery) -> Iterator[Row]:
    """Yield a row if offsets are missing behind a sound segment (``told_gap``).

    Objects of tiered storage have no cleaner_offset: what lies between two is not theirs to tell.
    """
    if "cleaner_offset" not in segment:
        return
    damage = recovery.damage
    is_sound = damage is None or damage.kind == DamageKind.PREALLOCATED_TAIL
    told = told_gap(
        segment["topic"],
        segment["base_offset"],
        recovery.next_offset,
        segment["next_base_offset"],
        records=recovery.record_count,
        by=Cleaned(segment["has_cleaner_offsets"], segment["cleaner_offset"]),
        log_start=segment["log_start_offset"] or 0,
    )
    if is_sound and told is not None:
        judgement = Judgement(LOG, IndexVerdict.MISSING, IndexKind.GAP, told.found)
        yield audit_row(segment, told.gap.file, told.gap.first, None, judgement, _UNSEEN)


def lost_log(log: Row, names: Iterable[str]) -> Iterator[Row]:
    """Yield a row if a folder has no segment, though its log directory notes records of the log.

    ``log`` may have high_watermark and log_start_offset; ``names``: of the files in its folder.

    Source: LogLoader.load, which begins a log without segments at its log start offset.
    """
    noted, start = log.get("high_watermark"), log.get("log_start_offset") or 0
    if not noted or any(parse_segment_name(name) is not None for name in names):
        return
    found = f"no segment lies in the folder, but {HIGH_WATERMARK} notes its high watermark {noted}"
    begun_anew = Consequence(
        Effect.NOT_SERVED,
        f"the broker starts, and begins the log anew at offset {start}",
        _PUT_BACK,
    )
    judgement = Judgement(LOG, IndexVerdict.MISSING, IndexKind.GAP, found)
    yield audit_row(log, file_name(start, LOG_SUFFIX), start, None, judgement, begun_anew)
