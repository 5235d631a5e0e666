"""Judge the entries of a ``.txnindex`` file by the log that it lies beside.

Entries are right if

1. every entry ends at a marker of its producer in this segment;
2. by the whole log, each aborted transaction that ends in this segment has an entry. The
   transaction may have begun before the oldest segment that is left.

Source: AbortedTxn, TransactionIndex.sanityCheck, TransactionIndex.append.
"""

from collections.abc import Sequence

from kafka_segments.kafka.broker_rules.index_files.judgement import (
    EVERY_VERSION,
    KNOWN_TXN_INDEX,
    TXN_INDEX,
    V4_4,
    IndexKind,
    IndexVerdict,
    Judgement,
    LogFacts,
    WalkLog,
)
from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.kafka.index.segment.transaction_index import (
    TRANSACTION_ENTRY_BYTES,
    AbortedTransaction,
    FailedCheck,
    decode_transaction_index,
    encode_transaction_index,
    failed_check,
)
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout


def judge_txn_index(found: bytes | None, log: LogFacts, walk: WalkLog) -> Judgement | None:
    """Judge a ``.txnindex`` file by the markers in its segment; return None for no file."""
    if found is None:
        return None
    entries = decode_transaction_index(found)
    before, since = (
        failed_check(found, log.base_offset, reads_whole_version=reads_it)
        for reads_it in (False, True)
    )
    is_refused = before is not None and before.version is None
    verdict, kind, message = _opinion(found, entries, log, walk)
    return Judgement(
        TXN_INDEX,
        verdict,
        kind,
        message,
        len(entries),
        None,
        EVERY_VERSION if is_refused else None,
        _fails_from(before, since),
    )


def _fails_from(before: FailedCheck | None, since: FailedCheck | None) -> Version | None:
    """Return the first release that ends at a version of an entry; None: none does.

    ``before``, ``since``: where the check of releases before and since 4.4 fails.
    """
    if before is not None and before.version is not None:
        return KNOWN_TXN_INDEX
    return V4_4 if since is not None and since.version is not None else None


def _opinion(
    found: bytes, entries: Sequence[AbortedTransaction], log: LogFacts, walk: WalkLog
) -> tuple[IndexVerdict, IndexKind | None, str]:
    if len(found) % TRANSACTION_ENTRY_BYTES:
        message = f"{len(found)} bytes, no multiple of {TRANSACTION_ENTRY_BYTES}"
        return IndexVerdict.CORRUPT, IndexKind.LENGTH, f"{message}: its last entry is cut short"
    markers = _markers(walk)
    last = log.base_offset - 1
    for row, entry in enumerate(entries):
        where = f"entry {row}: {_described(entry)}"
        version = found[row * TRANSACTION_ENTRY_BYTES : row * TRANSACTION_ENTRY_BYTES + 2]
        if any(version):
            found_version = int.from_bytes(version, signed=True)
            message = f"entry {row}: version {found_version}, 0 expected"
            return IndexVerdict.CORRUPT, IndexKind.BAD_CONTENT, message
        if entry.last_offset <= last or entry.first_offset > entry.last_offset:
            return IndexVerdict.CORRUPT, IndexKind.OUT_OF_ORDER, f"{where}, out of order"
        if entry.last_offset >= log.next_offset:
            message = f"{where}, the log ends at offset {log.next_offset}"
            return IndexVerdict.STALE, IndexKind.BEYOND_LOG, message
        if markers.get(entry.last_offset) != entry.producer_id:
            message = f"{where}, but no marker of this producer is there"
            return IndexVerdict.CORRUPT, IndexKind.UNTRUE, message
        last = entry.last_offset
    return (
        IndexVerdict.VALID,
        None,
        f"{len(entries)} entries, each ends at a marker of its producer",
    )


def _described(entry: AbortedTransaction) -> str:
    return f"producer {entry.producer_id}, offsets {entry.first_offset} to {entry.last_offset}"


def _markers(walk: WalkLog) -> dict[int, int]:
    """Return the producer of every control batch, by offset."""
    markers: dict[int, int] = {}
    for batches in walk():
        is_v2 = batches[wire.BATCH_MAGIC] >= layout.MAGIC_V2
        is_control = batches[wire.BATCH_ATTRIBUTES] & layout.CONTROL != 0
        found = batches[:, is_v2 & is_control]
        markers.update(
            zip(
                found[wire.BATCH_BASE_OFFSET].tolist(),
                found[wire.BATCH_PRODUCER_ID].tolist(),
                strict=True,
            )
        )
    return markers


def hold_against_log(
    judgement: Judgement | None, found: bytes | None, aborted: Sequence[AbortedTransaction]
) -> Judgement | None:
    """Judge a ``.txnindex`` file by the aborted transactions that the whole log gives.

    ``judgement`` is that of ``judge_txn_index``. Return None if there is no file, and none is due.
    """
    if judgement is not None and (found is None or judgement.verdict == IndexVerdict.UNJUDGED):
        return judgement
    if found is None or judgement is None:
        if not aborted:
            return None
        message = f"no {TXN_INDEX} file; rebuilt it has {len(aborted)} entries"
        return Judgement(TXN_INDEX, IndexVerdict.MISSING, None, message, None, len(aborted))
    judgement = judgement._replace(rebuilt_entries=len(aborted))
    if judgement.verdict != IndexVerdict.VALID:
        return judgement
    if found == (encode_transaction_index(aborted) or b""):
        message = "the bytes that recovery writes"
        return judgement._replace(verdict=IndexVerdict.IDENTICAL, message=message)
    entries = {entry.last_offset: entry for entry in decode_transaction_index(found)}
    for transaction in aborted:
        entry = entries.get(transaction.last_offset)
        if entry is None:
            message = f"aborted, but without an entry: {_described(transaction)}"
            kind = (
                IndexKind.LOG_GREW if transaction.last_offset > max(entries, default=-1) else None
            )
            verdict = IndexVerdict.CORRUPT if kind is None else IndexVerdict.STALE
            return judgement._replace(
                verdict=verdict, kind=kind or IndexKind.UNTRUE, message=message
            )
        if entry.first_offset > transaction.first_offset:
            message = f"{_described(entry)}, but it began at {transaction.first_offset}"
            return judgement._replace(
                verdict=IndexVerdict.CORRUPT, kind=IndexKind.UNTRUE, message=message
            )
    message = f"{judgement.message}; some began before what is left of the log"
    return judgement._replace(message=message)
