"""Hold the entries of a ``.txnindex`` file against the log that it lies beside.

34-byte entries: version int16 (0), producerId, firstOffset, lastOffset, lastStableOffset int64.
One for each aborted transaction that ends in this segment: lastOffset is its marker's.

Source: AbortedTxn, TransactionIndex.sanityCheck, TransactionIndex.append.
"""

import numpy as np
import numpy.typing as npt

from kafka_segments.index.audit import (
    EVERY_VERSION,
    TXN_INDEX,
    Judgement,
    Kind,
    LogFacts,
    Verdict,
    WalkLog,
)
from kafka_segments.wire import batches as wire

TXN_ENTRY_BYTES = 34
_ENTRY = np.dtype(
    [
        ("version", ">i2"),
        ("producer_id", ">i8"),
        ("first_offset", ">i8"),
        ("last_offset", ">i8"),
        ("last_stable_offset", ">i8"),
    ]
)


def judge_txn_index(found: bytes | None, log: LogFacts, walk: WalkLog) -> Judgement | None:
    """Judge a ``.txnindex`` file by the markers in its segment; None: there is no such file.

    What began in earlier segments is not looked at: an entry whose marker is there passes, and an
    aborted transaction without an entry is not seen.
    """
    if found is None:
        return None
    entries = np.frombuffer(found, dtype=_ENTRY, count=len(found) // TXN_ENTRY_BYTES)
    last_offsets = entries["last_offset"].astype(np.int64)
    is_refused = bool((last_offsets < log.base_offset).any())
    verdict, kind, message = _opinion(found, entries, log, walk)
    return Judgement(
        TXN_INDEX,
        verdict,
        kind,
        message,
        len(entries),
        None,
        EVERY_VERSION if is_refused else None,
    )


def _opinion(
    found: bytes, entries: npt.NDArray[np.void], log: LogFacts, walk: WalkLog
) -> tuple[Verdict, Kind | None, str]:
    if len(found) % TXN_ENTRY_BYTES:
        message = f"{len(found)} bytes, no multiple of {TXN_ENTRY_BYTES}: the last is cut short"
        return Verdict.CORRUPT, Kind.LENGTH, message
    markers = _markers(walk)
    last = log.base_offset - 1
    for row, (version, producer_id, first, marker, _) in enumerate(entries.tolist()):
        where = f"entry {row}: producer {producer_id}, offsets {first} to {marker}"
        if version:
            return Verdict.CORRUPT, Kind.BAD_CONTENT, f"entry {row}: version {version}, 0 expected"
        if marker <= last or first > marker:
            return Verdict.CORRUPT, Kind.OUT_OF_ORDER, f"{where}, out of order"
        if marker >= log.next_offset:
            message = f"{where}, the log ends at offset {log.next_offset}"
            return Verdict.STALE, Kind.BEYOND_LOG, message
        if markers.get(marker) != producer_id:
            message = f"{where}, but no marker of this producer is there"
            return Verdict.CORRUPT, Kind.UNTRUE, message
        last = marker
    return Verdict.VALID, None, f"{len(entries)} entries, each ends at a marker of its producer"


def _markers(walk: WalkLog) -> dict[int, int]:
    """Give the producer of every control batch, by offset."""
    markers: dict[int, int] = {}
    for batches in walk():
        is_v2 = batches[wire.MAGIC] >= wire.MAGIC_V2
        is_control = batches[wire.ATTRIBUTES] & wire.CONTROL != 0
        found = batches[:, is_v2 & is_control]
        markers.update(
            zip(found[wire.BASE_OFFSET].tolist(), found[wire.PRODUCER_ID].tolist(), strict=True)
        )
    return markers
