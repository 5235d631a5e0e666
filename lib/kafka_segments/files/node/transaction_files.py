"""Look for aborted transactions of which a segment's ``.txnindex`` does not tell.

Nothing tells of a ``.txnindex`` that is not there but the log itself: the headers of a segment lead
from one control batch to the next. They are read of logs that have such files, of segments whose
file is missing or empty.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from kafka_segments.errors import UnreadableBatchError
from kafka_segments.files.storage.files import Place, open_segment, read_whole
from kafka_segments.kafka.broker_rules.start.facts import TransactionFile
from kafka_segments.kafka.index.segment.batch_reading import headers
from kafka_segments.kafka.index.segment.transaction_index import (
    TRANSACTION_ENTRY_BYTES,
    decode_transaction_index,
    failed_check,
)
from kafka_segments.kafka.text.names import LOG_SUFFIX, TXN_INDEX_SUFFIX, file_name
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout

_MOST_BYTES = 64 * 1024 * 1024
_MOST_WALKED = 64 * 1024 * 1024
_ABORT = b"\0\0\0\0"  # the key of a marker: version 0, type 0
_RECORD_AT = layout.HEADER_BYTES


def read_transaction_files(
    folder: Place, bases: tuple[int, ...], files: Mapping[str, int], *, end: int | None = None
) -> dict[int, TransactionFile]:
    """Check the ``.txnindex`` files of a log; only what is wrong is returned.

    ``end``: the log's end; None: not known.

    Raises:
        OSError: a file cannot be read.
        FileChangedError: a file became shorter.
    """
    names = {base: file_name(base, TXN_INDEX_SUFFIX) for base in bases}
    if not any(name in files for name in names.values()):
        return {}
    found = {}
    for (base, name), limit in zip(names.items(), (*bases[1:], end), strict=True):
        judged = _judged(folder, base, name, files, limit)
        if judged is not None:
            found[base] = judged
    return found


def _judged(
    folder: Place, base: int, name: str, files: Mapping[str, int], limit: int | None
) -> TransactionFile | None:
    size = files.get(name, 0)
    if not size:
        aborted = _aborted(folder, base, files)
        listed = 0 if name in files else -1
        return TransactionFile(listed, aborted) if aborted else None
    data = read_whole(folder.child(name), most_bytes=_MOST_BYTES)
    whole = len(data) // TRANSACTION_ENTRY_BYTES * TRANSACTION_ENTRY_BYTES
    listed = whole // TRANSACTION_ENTRY_BYTES
    entries = decode_transaction_index(data[:whole])
    failed = failed_check(data, base)
    if failed is not None and failed.version is not None:
        reason = f"entry {failed.entry + 1} has version {failed.version}, 0 expected (Kafka 4.3)"
        return TransactionFile(listed, None, reason, is_refused_version=True)
    if failed is not None:
        return None  # the start recovers the segment
    if len(data) > whole:
        aborted = _aborted(folder, base, files)
        return TransactionFile(listed, aborted, f"cut in entry {listed + 1}")
    if any(after.last_offset <= before.last_offset for before, after in pairwise(entries)):
        aborted = _aborted(folder, base, files)
        return TransactionFile(listed, aborted, "its entries do not rise")
    if limit is not None and entries and entries[-1].last_offset >= limit:
        aborted = _aborted(folder, base, files)
        last = entries[-1].last_offset
        reason = f"entry {listed} ends at offset {last}, the segment before {limit}"
        return TransactionFile(listed, aborted, reason)
    return None


def _aborted(folder: Place, base: int, files: Mapping[str, int]) -> int | None:
    """Count the markers of aborted transactions in a segment; None: it is too large for that."""
    name = file_name(base, LOG_SUFFIX)
    if files.get(name, 0) > _MOST_WALKED:
        return None
    count = 0
    with open_segment(folder.child(name)) as opened:
        try:
            for batches in headers(opened.read_into, 0, opened.size_bytes):
                is_control = batches[wire.BATCH_ATTRIBUTES] & layout.CONTROL != 0
                is_control &= batches[wire.BATCH_MAGIC] >= layout.MAGIC_V2
                for at in np.flatnonzero(is_control).tolist():
                    position = int(batches[wire.BATCH_POSITION, at])
                    data = bytearray(64)
                    read = opened.read_into(position + _RECORD_AT, memoryview(data))
                    count += _is_abort(bytes(data[:read]))
        except UnreadableBatchError:
            return count
    return count


def _is_abort(record: bytes) -> bool:
    """Tell whether the record of a control batch is the marker of an aborted transaction.

    Its length, attributes, timestamp and offset deltas are varints before the key's length.
    """
    at = 0
    for field in range(5):
        if field == 1:
            at += 1
            continue
        while at < len(record) and record[at] & 0x80:
            at += 1
        at += 1
    return record[at : at + len(_ABORT)] == _ABORT
