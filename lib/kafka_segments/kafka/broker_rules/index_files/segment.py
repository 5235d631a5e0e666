"""Judge all index files beside one segment."""

from collections.abc import Mapping

from kafka_segments.kafka.broker_rules.index_files.judgement import (
    OFFSET_INDEX,
    TIME_INDEX,
    TXN_INDEX,
    EntryRules,
    IndexKind,
    IndexVerdict,
    Judgement,
    LogFacts,
    WalkLog,
    judge_entries,
)
from kafka_segments.kafka.broker_rules.index_files.offset_entries import judge_offset_entries
from kafka_segments.kafka.broker_rules.index_files.time_entries import judge_time_entries
from kafka_segments.kafka.broker_rules.index_files.transactions import judge_txn_index
from kafka_segments.kafka.index.segment.offset_index import decode_offset_index, encode_offset_index
from kafka_segments.kafka.index.segment.recovered_segment import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
)
from kafka_segments.kafka.index.segment.time_index import decode_time_index, encode_time_index

SEGMENT_SUFFIXES = (OFFSET_INDEX, TIME_INDEX, TXN_INDEX)
_OFFSET_RULES = EntryRules(
    OFFSET_INDEX, OFFSET_ENTRY_BYTES, decode_offset_index, encode_offset_index, judge_offset_entries
)
_TIME_RULES = EntryRules(
    TIME_INDEX, TIME_ENTRY_BYTES, decode_time_index, encode_time_index, judge_time_entries
)


def judge_segment(
    files: Mapping[str, bytes | None], log: LogFacts, walk: WalkLog
) -> list[Judgement]:
    """Judge the files beside a segment; ``files`` are by suffix, None: there is no such file."""
    offsets = judge_entries(files[OFFSET_INDEX], _OFFSET_RULES, log, walk)
    times = judge_entries(files[TIME_INDEX], _TIME_RULES, log, walk)
    if offsets.verdict == times.verdict == IndexVerdict.VALID and times.kind in (
        IndexKind.SPARSER,
        IndexKind.SHIFTED,
    ):
        times = times._replace(kind=offsets.kind)  # a time entry comes with an offset entry
    txns = judge_txn_index(files[TXN_INDEX], log, walk)
    return [offsets, times] if txns is None else [offsets, times, txns]


def unjudged(files: Mapping[str, bytes | None], kind: IndexKind, why: str) -> list[Judgement]:
    """Return a judgement for each file of a log that gives no indexes: nothing is known of it."""
    found = {suffix: data for suffix, data in files.items() if data is not None}
    return [
        Judgement(suffix, IndexVerdict.UNJUDGED, kind, why, None, None, None)
        for suffix in sorted(found)
    ]
