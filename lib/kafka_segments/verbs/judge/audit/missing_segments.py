"""Rows of an audit about segments of a broker's log that are missing between two others."""

from collections.abc import Iterator

from kafka_segments.kafka.broker_rules.gaps import told_gap
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind, SegmentRecovery
from kafka_segments.verbs.judge.audit.decide.consequences import Consequence, Effect
from kafka_segments.verbs.judge.audit.decide.judgement import (
    LOG,
    IndexKind,
    IndexVerdict,
    Judgement,
)
from kafka_segments.verbs.judge.audit.rows import Row, audit_row

_UNSEEN = Consequence(
    Effect.NOT_SERVED,
    "the broker starts, and does not serve these offsets: consumers go on behind them",
    "put the missing files back from a backup or another replica",
)


def missing_rows(segment: Row, recovery: SegmentRecovery) -> Iterator[Row]:
    """Yield a row if offsets are missing behind a sound segment (``told_gap``).

    Objects of tiered storage have no was_compacted: what lies between two is not theirs to tell.
    """
    if "was_compacted" not in segment:
        return
    damage = recovery.damage
    is_sound = damage is None or damage.kind == DamageKind.PREALLOCATED_TAIL
    told = told_gap(
        segment["base_offset"],
        recovery.next_offset,
        segment["next_base_offset"],
        records=recovery.record_count,
        was_compacted=segment["was_compacted"],
        log_start=segment["log_start_offset"] or 0,
    )
    if is_sound and told is not None:
        judgement = Judgement(LOG, IndexVerdict.MISSING, IndexKind.GAP, told.found)
        yield audit_row(segment, told.gap.file, told.gap.first, None, judgement, _UNSEEN)
