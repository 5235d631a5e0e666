"""Decide what a broker of a release does with an index file, and what is safe to do about it.

1. Releases below 0.10.1 ignore time indexes, releases below 0.11 transaction indexes.
2. A broker recovers a segment at start, and rewrites its index files, in three cases: its
   ``.index`` is missing; the stop was not clean and the segment lies at or behind the recovery
   point; a file fails the sanity check of the release. Releases below 2.3 check the offset and the
   time index, all releases the ``.txnindex``. An entry of a version that the release does not know
   ends the start, unless the ``.index`` is missing.
3. All other files are trusted as they are.

Source: LogSegment.sanityCheck, LogLoader, LogManager of the releases named; KAFKA-10207,
KAFKA-19200. For 4.3 the tests make Kafka's own classes load such files.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.kafka.broker_rules.index_files.judgement import (
    KNOWN_TXN_INDEX,
    OFFSET_INDEX,
    TIME_INDEX,
    TXN_INDEX,
    IndexKind,
    IndexVerdict,
    Judgement,
)
from kafka_segments.kafka.broker_rules.limits import holds_too_much, index_limits
from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.kafka.index.segment.recovered_segment import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
)

_V0_9, _V0_10_1 = (0, 9), (0, 10, 1)
_ENTRY_BYTES = {OFFSET_INDEX: OFFSET_ENTRY_BYTES, TIME_INDEX: TIME_ENTRY_BYTES}
KNOWN_SINCE = {TIME_INDEX: _V0_10_1, TXN_INDEX: KNOWN_TXN_INDEX}
_NO_INDEX = f"its {OFFSET_INDEX} is missing"


class Effect(StrEnum):
    """What a broker does with a file."""

    IGNORED = "ignored"
    TRUSTED = "trusted"
    REBUILT = "rebuilt_at_start"
    DELETED = "deleted_at_start"
    FAILS = "fails_to_start"
    FAILS_LATER = "fails_when_read"
    WRITES_ELSEWHERE = "writes_elsewhere"
    NOT_LOADED = "not_loaded"
    SLOW = "slow_lookups"
    WRONG_LOOKUPS = "wrong_lookups"
    LOSES_LOG_END = "log_end_moves_back"
    DELETES_DATA = "deletes_data"
    EXPIRES_EARLY = "expires_early"
    WRONG_TIMES = "wrong_times"
    LOSES_EPOCHS = "loses_epochs"
    FALLS_BACK_TO_MTIME = "falls_back_to_mtime"
    NOT_SERVED = "not_served"
    READS_FAIL = "remote_reads_fail"
    NEVER_READ = "never_read"
    STORED_TWICE = "stored_twice"
    REPLICA_FAILS = "replica_build_fails"
    UNKNOWN = "unknown"


class Consequence(NamedTuple):
    """An effect, the same in words, and what is safe to do."""

    effect: Effect
    text: str
    action: str


class SegmentState(NamedTuple):
    """What a consequence depends on besides the files.

    ``is_open``: as in ``LogFacts``. ``is_recovered``: the stop was not clean, and the segment
    lies at or behind the recovery point. ``has_timestamps``: a batch of the log has a timestamp.
    ``log_damage``: where and why recovery cuts the log; None: it does not. ``is_tiered``: the
    segment lies in tiered storage, in Aiven's layout.
    """

    is_active: bool
    is_open: bool
    is_recovered: bool
    has_timestamps: bool
    log_damage: str | None = None
    segment_index_bytes: int = 10 * 1024 * 1024
    is_tiered: bool = False


OFFLINE = "the log directory goes offline, and a broker with no other one shuts down"
_NOTHING = "nothing"
_INSTALL = (
    "with the broker stopped cleanly put the rebuilt file in its place"
    " (kafka-segments build --in-place)"
)


def why_recovered(
    judgements: Sequence[Judgement], state: SegmentState, version: Version
) -> str | None:
    """Return why the broker recovers the segment at start; None: it does not.

    ``judgements`` are those of all files beside the segment.
    """
    by_suffix = {judgement.suffix: judgement for judgement in judgements}
    index = by_suffix.get(OFFSET_INDEX)
    if index is not None and (
        index.verdict == IndexVerdict.MISSING or index.kind == IndexKind.DANGLING_LINK
    ):
        return _NO_INDEX
    if any(judgement.ends_start(version) for judgement in judgements):
        return None
    if state.is_recovered:
        return "the stop was not clean"
    for suffix in (OFFSET_INDEX, TIME_INDEX, TXN_INDEX):
        judgement = by_suffix.get(suffix)
        if judgement is None or version < KNOWN_SINCE.get(suffix, (0,)):
            continue
        if judgement.refused_below is not None and version < judgement.refused_below:
            return f"its {suffix} fails the sanity check"
    return None


def consequence_of(
    judgement: Judgement, state: SegmentState, version: Version, recovered: str | None
) -> Consequence:
    """Return what a broker does with a file at its next start.

    ``recovered`` is what ``why_recovered`` returned.
    """
    name = _release(version)
    if version < KNOWN_SINCE.get(judgement.suffix, (0,)):
        text = f"Kafka {name} knows no {judgement.suffix} files"
        return Consequence(Effect.IGNORED, text, _NOTHING)
    if state.is_open and judgement.kind in (IndexKind.PREALLOCATED, IndexKind.ALL_ZERO):
        text = "normal while the broker runs; after a crash it recovers the segment at start"
        return Consequence(Effect.TRUSTED, text, "nothing; do not copy it to another broker")
    if recovered is not None:
        return _recovered(judgement, state, version, recovered)
    if judgement.ends_start(version):
        text = f"the broker ends at start: {judgement.message}"
        return Consequence(Effect.FAILS, text, _safe(judgement, state))
    if judgement.verdict == IndexVerdict.UNJUDGED:
        text = f"nothing is known of it: {judgement.message}"
        return Consequence(Effect.UNKNOWN, text, "mend or restore the segment first")
    if state.is_active and _is_too_large(judgement, state):
        text = (
            f"the broker ends at start: {judgement.entries} entries, more than segment.index.bytes"
            f" of {state.segment_index_bytes} has room for"
        )
        return Consequence(Effect.FAILS, text, _safe(judgement, state))
    if judgement.verdict in (IndexVerdict.IDENTICAL, IndexVerdict.VALID):
        return Consequence(Effect.TRUSTED, "taken as it is, and right", _NOTHING)
    if judgement.suffix == OFFSET_INDEX and judgement.kind == IndexKind.EMPTY:
        text = (
            "right where index.interval.bytes is longer than the log; lookups read from its start"
        )
        return Consequence(Effect.TRUSTED, text, _NOTHING)
    effect, text = _TRUSTED[judgement.suffix](judgement, state)
    return Consequence(effect, f"{_taken(judgement)}{text}", _safe(judgement, state))


def _is_too_large(judgement: Judgement, state: SegmentState) -> bool:
    width = _ENTRY_BYTES.get(judgement.suffix)
    size_bytes = (judgement.entries or 0) * (width or 0)
    return width is not None and holds_too_much(size_bytes, width, state.segment_index_bytes)


def _recovered(
    judgement: Judgement, state: SegmentState, version: Version, recovered: str
) -> Consequence:
    if version < _V0_9 and recovered.endswith("sanity check"):
        text = f"Kafka {_release(version)} does not start: {recovered}"
        return Consequence(Effect.FAILS, text, f"move the {judgement.suffix} away before the start")
    text = f"the segment is recovered at start, its index files rewritten: {recovered}"
    if state.log_damage is None:
        return Consequence(Effect.REBUILT, text, _NOTHING)
    text += f"; the log is cut there: {state.log_damage}"
    if state.is_recovered and not state.is_active:
        text += "; all segments behind it are deleted"
    return Consequence(Effect.REBUILT, text, "copy the .log before the broker starts")


def _taken(judgement: Judgement) -> str:
    return "" if judgement.verdict == IndexVerdict.MISSING else "taken as it is, unchecked: "


def _safe(judgement: Judgement, state: SegmentState) -> str:
    if state.log_damage is not None:
        return f"copy the .log first, it is damaged ({state.log_damage}); then {_INSTALL}"
    return (
        _INSTALL
        if judgement.suffix != TXN_INDEX
        else (
            "with the broker stopped move the segment's .index away: the start recovers the segment"
            " and rebuilds all its files"
        )
    )


def _offset_index(judgement: Judgement, state: SegmentState) -> tuple[Effect, str]:
    match judgement.verdict, judgement.kind:
        case (IndexVerdict.STALE, IndexKind.LOG_GREW):
            return Effect.SLOW, "right, but lookups read far through the log"
        case (IndexVerdict.CORRUPT, IndexKind.LENGTH):
            return Effect.SLOW, "the cut entry is passed over, the rest is used"
        case (IndexVerdict.NEVER_WRITTEN, _) | (IndexVerdict.PADDED, _):
            text = "right, but slow: the zeros are entries that name byte 0, lookups read from it"
            limits = index_limits(state.segment_index_bytes)
            is_full = limits.is_offset_index_full(judgement.entries or 0)
            full = "; the index counts as full: it rolls at the next append"
            return Effect.SLOW, text + full * (state.is_active and is_full)
        case (IndexVerdict.STALE | IndexVerdict.CORRUPT, _) if state.is_active:
            text = "the log end is looked for behind the last entry and can fall back to the base"
            return Effect.LOSES_LOG_END, (
                f"{text} offset: new records get offsets that are there already, and appends and"
                " rolls fail"
            )
    text = "fetches that such an entry leads start at wrong bytes: records are missed, or errors"
    return Effect.WRONG_LOOKUPS, text


def _time_index(judgement: Judgement, state: SegmentState) -> tuple[Effect, str]:
    is_unwritten = judgement.verdict == IndexVerdict.MISSING or judgement.kind == IndexKind.EMPTY
    if is_unwritten and not state.has_timestamps:
        return Effect.TRUSTED, "made anew with no entries, as is right here"
    if is_unwritten:
        text = "not rebuilt: retention and searches by time go by the mtime of the .log"
        return Effect.FALLS_BACK_TO_MTIME, text
    match judgement.verdict, judgement.kind:
        case (IndexVerdict.NEVER_WRITTEN, _) | (IndexVerdict.PADDED, _):
            return _zero_timestamp(judgement, state)
        case (IndexVerdict.STALE, IndexKind.NOT_CLOSED):
            text = "its last timestamp is too small: retention.ms deletes the segment too early,"
            return Effect.EXPIRES_EARLY, f"{text} searches by time pass over it"
        case (IndexVerdict.CORRUPT, IndexKind.LENGTH):
            return (
                Effect.WRONG_TIMES,
                "the cut entry is passed over, and may hold the last timestamp",
            )
    text = "retention and searches by time go by wrong timestamps or offsets"
    return Effect.WRONG_TIMES, text


def _zero_timestamp(judgement: Judgement, state: SegmentState) -> tuple[Effect, str]:
    limits = index_limits(state.segment_index_bytes)
    is_full = state.is_active and limits.is_time_index_full(judgement.entries or 0)
    full = "; the index counts as full: it rolls at the next append" * is_full
    text = "the largest timestamp is 0 (1970): retention.ms deletes the segment at the first check"
    return Effect.DELETES_DATA, f"{text} that leaves no older one{full}"


def _txn_index(judgement: Judgement, state: SegmentState) -> tuple[Effect, str]:
    return Effect.WRONG_LOOKUPS, "read_committed consumers may be given aborted records"


_TRUSTED: dict[str, Callable[[Judgement, SegmentState], tuple[Effect, str]]] = {
    OFFSET_INDEX: _offset_index,
    TIME_INDEX: _time_index,
    TXN_INDEX: _txn_index,
}


NORMAL = (Effect.IGNORED, Effect.TRUSTED)
MENDED = (Effect.REBUILT, Effect.DELETED)
"""Effects of which a start leaves nothing to do if the file was right."""
RIGHT = (IndexVerdict.IDENTICAL, IndexVerdict.VALID)


def is_finding(judgement: Judgement, consequence: Consequence) -> bool:
    """Return whether someone must act on a file: it is neither right nor ignored nor normal.

    What a start mends by itself, losing nothing, asks for no action and is none, and neither is
    what retention deletes as it deletes the rest.
    """
    if consequence.action == _NOTHING or consequence.effect == Effect.STORED_TWICE:
        return False
    if consequence.effect in MENDED:
        return judgement.verdict not in RIGHT
    return consequence.effect not in NORMAL


def orphan_consequence(version: Version) -> Consequence:
    """Return what becomes of an index file without its segment."""
    text = f"Kafka {_release(version)} deletes it at start"
    action = "find out where its segment is before the broker starts; else nothing"
    return Consequence(Effect.DELETED, text, action)


def _release(version: Version) -> str:
    return ".".join(map(str, version))
