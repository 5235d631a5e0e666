"""The transaction index file: a 34-byte entry for each aborted transaction, in marker order.

``version`` int16 = 0, ``producerId`` int64, ``firstOffset`` int64, ``lastOffset`` int64 (the
marker's), ``lastStableOffset`` int64. Big-endian; no header, no checksum. The entry lies in the
segment of the marker. A segment without aborted transactions has no file.

Source: AbortedTxn, TransactionIndex.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

TRANSACTION_ENTRY_BYTES = 34
_VERSION = 0
_LAST_TAKEN_BEFORE = 0xFF  # the greatest version whose first byte is 0
_ENTRY = np.dtype(
    [
        ("version", ">i2"),
        ("producer_id", ">i8"),
        ("first_offset", ">i8"),
        ("last_offset", ">i8"),
        ("last_stable_offset", ">i8"),
    ]
)


class AbortedTransaction(NamedTuple):
    """An aborted transaction; ``last_stable_offset`` is that at the time of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_transaction_index(aborted: Sequence[AbortedTransaction]) -> bytes | None:
    """Write the bytes of a ``.txnindex`` file; None where Kafka has no file."""
    if not aborted:
        return None
    return np.array([(_VERSION, *entry) for entry in aborted], dtype=_ENTRY).tobytes()


def decode_transaction_index(data: bytes) -> list[AbortedTransaction]:
    """Read the entries of a ``.txnindex`` file; a partial one is left out."""
    rows = np.frombuffer(data, dtype=_ENTRY, count=len(data) // TRANSACTION_ENTRY_BYTES)
    return [AbortedTransaction(*row[1:]) for row in rows.tolist()]


class FailedCheck(NamedTuple):
    """The first entry at which Kafka's check of a ``.txnindex`` fails.

    Attributes:
        entry: Its number, from 0.
        version: Its version, if that is not known: the log is not loaded. None: its transaction
            ends below the segment, which is recovered.
    """

    entry: int
    version: int | None


def failed_check(
    data: bytes, base_offset: int, *, reads_whole_version: bool = False
) -> FailedCheck | None:
    """Say where Kafka's check of a ``.txnindex`` fails; None: it does not.

    ``reads_whole_version``: as in releases from 4.4 on, which know version 0 alone. Those before
    read its first byte, and take one up to 0.
    Source: TransactionIndex.sanityCheck, AbortedTxn.version (3.9.2 to 4.4.0).
    """
    entries = np.frombuffer(data, dtype=_ENTRY, count=len(data) // TRANSACTION_ENTRY_BYTES)
    versions = entries["version"]
    is_unknown = versions != 0 if reads_whole_version else versions > _LAST_TAKEN_BEFORE
    failing = np.flatnonzero(is_unknown | (entries["last_offset"] < base_offset))
    if not len(failing):
        return None
    first = int(failing[0])
    return FailedCheck(first, int(versions[first]) if is_unknown[first] else None)


def ends_below(data: bytes, base_offset: int) -> bool:
    """Tell whether Kafka's check of a ``.txnindex`` has the segment recovered."""
    failed = failed_check(data, base_offset)
    return failed is not None and failed.version is None
