"""Decide what a broker does with a path that is no plain file: a folder, a pipe, a link.

1. A ``.txnindex`` is opened at start if there is one. Another index file is opened at start if
   the segment is the active one or is recovered, and always below 2.3; otherwise at the first read.
2. A file that cannot be opened takes the log directory offline. A broker without another log
   directory shuts down.
3. Links are followed: what is written to the file goes to where the link leads. A link that leads
   nowhere counts as missing, and the file is made where it leads.
4. A ``.log`` that is no file is passed over.

Source: LogSegment.open, LogLoader.loadSegmentFiles, AbstractIndex, TransactionIndex. For 4.3 the
tests make Kafka's own classes load such folders.
"""

from kafka_segments.kafka.broker_rules.index_files.judgement import (
    LOG,
    SNAPSHOT,
    TXN_INDEX,
    V2_3,
    IndexKind,
    IndexVerdict,
    Judgement,
)
from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS
from kafka_segments.verbs.judge.audit.decide.consequences import (
    OFFLINE,
    Consequence,
    Effect,
    SegmentState,
)

ODD_KINDS = (
    IndexKind.FOLDER,
    IndexKind.SPECIAL,
    IndexKind.ENDLESS_LINK,
    IndexKind.DANGLING_LINK,
    IndexKind.LINK,
)
_PUT_A_FILE = "with the broker stopped put a file in its place, or take it away"
_PUT_THE_FILE = "with the broker stopped put the file itself in the link's place, or nothing"


def judge_odd_file(suffix: str, kind: IndexKind, reason: str) -> Judgement:
    """Judge a path that is no plain file; a link that is not followed is unjudged."""
    verdict = IndexVerdict.UNJUDGED if kind == IndexKind.LINK else IndexVerdict.CORRUPT
    return Judgement(suffix, verdict, kind, reason)


def odd_index_consequence(
    judgement: Judgement, state: SegmentState, version: Version, recovered: str | None
) -> Consequence:
    """Return what a broker does with an index file of ``ODD_KINDS``; see ``consequence_of``."""
    is_transactions = judgement.suffix == TXN_INDEX
    is_opened = state.is_active or recovered is not None or version < V2_3
    match judgement.kind:
        case IndexKind.LINK:
            return _written("a broker follows it: what it reads, writes and cuts lies there")
        case IndexKind.ENDLESS_LINK | IndexKind.DANGLING_LINK if is_transactions:
            return _written("taken for missing; the next aborted transaction is written there")
        case IndexKind.DANGLING_LINK:
            rebuilt = " and rebuilt" if recovered is not None else ", without entries"
            return _written(f"taken for missing: it is made anew where the link leads{rebuilt}")
        case IndexKind.FOLDER | IndexKind.SPECIAL if not (is_transactions or is_opened):
            pipe = ", of a pipe when it is recovered or cut" * (judgement.kind == IndexKind.SPECIAL)
            text = f"the broker starts; at the first read from the segment{pipe}, {OFFLINE}"
            return Consequence(Effect.FAILS_LATER, text, _PUT_A_FILE)
    return Consequence(Effect.FAILS, f"it cannot be opened at start: {OFFLINE}", _PUT_A_FILE)


def odd_log_file_consequence(judgement: Judgement) -> Consequence:
    """Return what a broker does with such a ``.log``, ``.snapshot`` or leader epoch file."""
    if judgement.kind == IndexKind.LINK:
        return _written("a broker follows it: what it reads, writes and cuts lies there")
    match judgement.suffix:
        case suffix if suffix == LOG:
            text = "passed over: the log is loaded without the segment, consumers skip its records"
            return Consequence(Effect.NOT_LOADED, text, _PUT_A_FILE)
        case suffix if suffix == SNAPSHOT and judgement.kind == IndexKind.DANGLING_LINK:
            return _written("taken for missing; the next snapshot at this offset is written there")
        case suffix if suffix == SNAPSHOT:
            text = "passed over after a clean stop; a recovery that is to write it there fails,"
            text += " and the broker cuts the log"
            return Consequence(Effect.LOSES_LOG_END, text, _PUT_A_FILE)
        case suffix if suffix == LEADER_EPOCHS and judgement.kind == IndexKind.SPECIAL:
            text = "the start waits for a pipe that nobody writes to, or does not load the log"
            return Consequence(Effect.FAILS, text, _PUT_A_FILE)
    return Consequence(Effect.FAILS, f"it cannot be read at start: {OFFLINE}", _PUT_A_FILE)


def _written(text: str) -> Consequence:
    return Consequence(Effect.WRITES_ELSEWHERE, text, _PUT_THE_FILE)
