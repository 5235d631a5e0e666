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


def ends_below(data: bytes, base_offset: int) -> bool:
    """Tell whether a transaction ends below the segment, for which Kafka refuses a ``.txnindex``.

    Source: TransactionIndex.sanityCheck.
    """
    return any(entry.last_offset < base_offset for entry in decode_transaction_index(data))
