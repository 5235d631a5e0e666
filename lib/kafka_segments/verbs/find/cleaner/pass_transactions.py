"""The transactions of a pass of the cleaner, from a log's transaction indexes and markers."""

from collections.abc import Mapping, Sequence

import numpy as np

from kafka_segments.files.segments.chunks import Chunk
from kafka_segments.files.storage.files import Place, read_whole
from kafka_segments.kafka.broker_rules.cleaner.one_pass import Flags
from kafka_segments.kafka.broker_rules.cleaner.transactions import CleanedTransactions
from kafka_segments.kafka.index.segment.markers import IS_MARKER, decode_marker
from kafka_segments.kafka.index.segment.producer_batches import EMPTY_CONTROL
from kafka_segments.kafka.index.segment.transaction_index import (
    AbortedTransaction,
    decode_transaction_index,
)
from kafka_segments.kafka.text.names import TXN_INDEX_SUFFIX, file_name
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout

_MOST_INDEX_BYTES = 1024 * 1024 * 1024
_OTHER_CONTROL = -2


class AbortedTransactions:
    """The entries of a log's transaction indexes.

    Args:
        folder: the log's folder.
        bases: base offsets of its segments, in order.
        sizes: bytes of the files there.

    Raises:
        OSError: an index cannot be read.
    """

    def __init__(self, folder: Place, bases: Sequence[int], sizes: Mapping[str, int]) -> None:
        self._bases = bases
        self._of: dict[int, list[AbortedTransaction]] = {}
        for base in bases:
            name = file_name(base, TXN_INDEX_SUFFIX)
            if sizes.get(name):
                data = read_whole(folder.child(name), most_bytes=_MOST_INDEX_BYTES)
                self._of[base] = decode_transaction_index(data)

    def between(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return those between two offsets. Source: UnifiedLog.collectAbortedTransactions."""
        first = max((base for base in self._bases if base <= start), default=self._bases[0])
        found = []
        for base, aborted in self._of.items():
            if base < first:
                continue
            for one in aborted:
                if one.last_offset >= start and one.first_offset < end:
                    found.append(one)
                if one.last_stable_offset >= end:
                    return found
        return found


class PassTransactions:
    """The transactions at a chunk of a pass."""

    def __init__(self, aborted: AbortedTransactions) -> None:
        self._aborted, self._state = aborted, CleanedTransactions()
        self._kinds: dict[tuple[int, bytes], int] = {}

    def come_to(self, start: int, end: int) -> None:
        """Take the aborted transactions of the offsets that come next."""
        self._state.add(self._aborted.between(start, end))

    def may_go(self, chunk: Chunk) -> Flags:
        """Come by some batches; tell of those of transactions which may go."""
        batches = chunk.batches
        found = np.zeros(batches.shape[1], dtype=np.bool_)
        attributes = batches[wire.BATCH_ATTRIBUTES]
        asked = attributes & (layout.TRANSACTIONAL | layout.CONTROL) != 0
        asked &= batches[wire.BATCH_MAGIC] >= layout.MAGIC_V2
        for batch in np.flatnonzero(asked).tolist():
            producer_id = int(batches[wire.BATCH_PRODUCER_ID, batch])
            last = int(batches[wire.BATCH_LAST_OFFSET, batch])
            if attributes[batch] & layout.CONTROL:
                found[batch] = self._state.may_go(producer_id, last, self._kind(chunk, batch))
            else:
                found[batch] = self._state.is_aborted(producer_id, last)
        return found

    def _kind(self, chunk: Chunk, batch: int) -> int:
        """Return the kind of a control batch."""
        column = chunk.batches[:, batch]
        if not column[wire.BATCH_RECORD_COUNT]:
            return EMPTY_CONTROL
        if column[wire.BATCH_PRODUCER_ID] < 0 or chunk.data is None:
            return _OTHER_CONTROL
        start = int(column[wire.BATCH_POSITION]) - chunk.data_position
        data = chunk.data[start : start + int(column[wire.BATCH_SIZE_BYTES])]
        form = int(column[wire.BATCH_ATTRIBUTES]), data[layout.HEADER_BYTES :].tobytes()
        if form not in self._kinds:
            marker = decode_marker(data)
            self._kinds[form] = marker.kind if marker.end == IS_MARKER else _OTHER_CONTROL
        return self._kinds[form]
