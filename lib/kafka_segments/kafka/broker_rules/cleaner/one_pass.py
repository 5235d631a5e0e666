"""What a pass of the cleaner keeps of the batches that it comes by, and how large they are then.

1. A record stays that lies behind the keys that were noted, or is the last of its key. One without
   a key goes. A tombstone goes once the delete horizon of its batch has passed; where the batch
   has none so far, this pass gives it one. Messages v0 and v1 go by their segment's age instead.
2. A batch is copied where all of it stays, else written anew as v2. One of which nothing stays
   goes, but for its header where it is the last one of an active producer, or of the round.

Source: Cleaner.cleanInto, shouldRetainRecord; MemoryRecords.filterTo; DefaultRecord.sizeOf (4.3.1).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.broker_rules.cleaner.outcome import CleanerThrowsError, PassCounts
from kafka_segments.kafka.broker_rules.record_sizes import bytes_but_times, varint_bytes
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import filling
from kafka_segments.kafka.wire import header_layout as layout

Flags = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
_EMPTY_LEGACY = "IllegalStateException: Empty batches are only supported for magic v2 and above"
_NO_PRODUCER = (
    "IllegalArgumentException: Cannot write transactional messages without a valid producer ID"
)
_NO_EPOCH = "IllegalArgumentException: Invalid negative producer epoch"
_NO_EPOCH_IS = -(2**31)
_NO_SEQUENCE = "IllegalArgumentException: Invalid negative sequence number used"


class LastRecord(NamedTuple):
    """What a producer sent last; ``data_offset`` None: a marker has its newest epoch."""

    data_offset: int | None
    epoch: int


class PassRules(NamedTuple):
    """What holds for a whole pass.

    Attributes:
        now_ms: The moment.
        delete_retention_ms: ``delete.retention.ms``.
        latest_offset: The offset up to which keys were noted.
        round_end: The offset that the pass could reach at most.
        last_records: Of each active producer.
    """

    now_ms: int
    delete_retention_ms: int
    latest_offset: int
    round_end: int
    last_records: Mapping[int, LastRecord]


class Fates(NamedTuple):
    """What is known of batches before their records are looked at.

    Attributes:
        may_go: Of an aborted transaction, or a marker whose transaction is gone.
        discards: No record of it stays.
        keeps_header: Its header stays where none of its records does.
    """

    may_go: Flags
    discards: Flags
    keeps_header: Flags

    @property
    def is_read(self) -> Flags:
        """Tell of which batches the cleaner reads the records."""
        return ~self.discards | self.keeps_header


def fates_of(batches: wire.Batches, may_go: Flags, rules: PassRules) -> Fates:
    """Say what is known of batches before their records are looked at."""
    horizon, control = _horizons(batches), is_control(batches)
    has_passed = _has_horizon(batches) & (horizon <= rules.now_ms)
    keeps_header = batches[wire.BATCH_LAST_OFFSET] + 1 == rules.round_end
    keeps_header |= _is_last_of_producer(batches, rules.last_records)
    return Fates(may_go, may_go & (~control | has_passed), keeps_header)


def _is_last_of_producer(batches: wire.Batches, last: Mapping[int, LastRecord]) -> Flags:
    """Tell of each batch whether it holds what its producer sent last."""
    producers, of_batch = np.unique(batches[wire.BATCH_PRODUCER_ID], return_inverse=True)
    known = [last.get(producer) for producer in producers.tolist()]
    data_offset = np.array(
        [-1 if one is None or one.data_offset is None else one.data_offset for one in known]
    )
    epoch = np.array(
        [_NO_EPOCH_IS if one is None or one.data_offset is not None else one.epoch for one in known]
    )
    is_last: Flags = batches[wire.BATCH_LAST_OFFSET] == data_offset[of_batch]
    is_last |= is_control(batches) & (batches[wire.BATCH_PRODUCER_EPOCH] == epoch[of_batch])
    is_last &= batches[wire.BATCH_PRODUCER_ID] >= 0
    return is_last


class CleanedBatches:
    """What a pass keeps of some batches, whose records are taken piece by piece."""

    def __init__(
        self, batches: wire.Batches, fates: Fates, rules: PassRules, *, keeps_old_tombstones: bool
    ) -> None:
        count = batches.shape[1]
        self._batches, self._fates, self._rules = batches, fates, rules
        self._is_v2 = batches[wire.BATCH_MAGIC] >= layout.MAGIC_V2
        self._control, self._horizon = is_control(batches), _horizons(batches)
        self._has_horizon = _has_horizon(batches)
        passed = self._has_horizon & (rules.now_ms >= self._horizon)
        self._keeps_tombstones = np.where(self._is_v2, ~passed, keeps_old_tombstones)
        self._new_horizon = rules.now_ms + rules.delete_retention_ms
        self._first = np.zeros((2, count), dtype=np.int64)  # offset and timestamp of the first kept
        self._read = np.zeros(count, dtype=np.int64)
        self._kept = np.zeros(count, dtype=np.int64)
        self._null_keys = np.zeros(count, dtype=np.int64)
        self._tombstones = np.zeros((2, count), dtype=np.int64)  # read, kept
        self._sizes = np.zeros((3, count), dtype=np.int64)  # read, kept, kept with a new horizon

    def take(self, columns: filling.Columns, rows: int, noted: Int64s, of_batch: Int64s) -> None:
        """Look at records.

        Args:
            columns: keys, values and headers of the rows.
            rows: how many.
            noted: the offset that is noted for the key of each; -1: none.
            of_batch: the batch of each.
        """
        offsets, timestamps = (
            columns.rows[filling.ROW_OFFSET, :rows],
            columns.rows[filling.ROW_TIMESTAMP, :rows],
        )
        no_key, no_value = columns.key.is_null[:rows], columns.value.is_null[:rows]
        keeps = ~no_key & (offsets >= noted) & (~no_value | self._keeps_tombstones[of_batch])
        keeps |= (offsets > self._rules.latest_offset) | self._control[of_batch]
        keeps &= ~self._fates.discards[of_batch]
        count = len(self._kept)
        data = ~self._control[of_batch]
        self._note_first(of_batch, keeps, offsets, timestamps)
        self._read += np.bincount(of_batch, minlength=count)
        self._kept += np.bincount(of_batch[keeps], minlength=count)
        self._null_keys += np.bincount(of_batch[no_key & ~keeps & data], minlength=count)
        self._tombstones[0] += np.bincount(of_batch[no_value & data], minlength=count)
        self._tombstones[1] += np.bincount(of_batch[keeps & no_value], minlength=count)
        base = np.where(self._has_horizon, self._horizon, self._first[1])[of_batch]
        fixed = bytes_but_times(columns, rows, offsets - self._bases()[of_batch])
        every, new = np.ones(rows, dtype=np.bool_), np.full(rows, self._new_horizon)
        forms = ((every, self._horizon[of_batch]), (keeps, base), (keeps, new))
        for at, (chosen, start) in enumerate(forms):
            body = fixed + varint_bytes(timestamps - start)
            size = np.where(chosen, body + varint_bytes(body), 0)
            self._sizes[at] += np.bincount(of_batch, size, minlength=count).astype(np.int64)

    def _bases(self) -> Int64s:
        bases: Int64s = self._batches[wire.BATCH_BASE_OFFSET]
        return np.where(self._is_v2, bases, self._first[0])

    def _note_first(
        self, of_batch: Int64s, keeps: Flags, offsets: Int64s, timestamps: Int64s
    ) -> None:
        kept = np.flatnonzero(keeps)
        batches, at = np.unique(of_batch[kept], return_index=True)
        is_new = self._kept[batches] == 0
        self._first[0, batches[is_new]] = offsets[kept[at[is_new]]]
        self._first[1, batches[is_new]] = timestamps[kept[at[is_new]]]

    def add_to(self, counts: PassCounts) -> None:
        """Add up what is kept.

        Raises:
            CleanerThrowsError: nothing of a message v0 or v1 is kept that may not go as a whole, or
                a batch that is written anew has a producer without epoch or sequence.
        """
        batches, fates, control = self._batches, self._fates, self._control
        sizes = batches[wire.BATCH_SIZE_BYTES]
        has_kept = self._kept > 0
        keeps_header = ~has_kept & fates.keeps_header
        gets_horizon = (
            has_kept & ~self._has_horizon & ((self._tombstones[1] > 0) | (control & fates.may_go))
        )
        copied = has_kept & self._is_v2 & (self._kept == self._read) & ~gets_horizon
        anew = has_kept & ~copied
        self._check(anew, keeps_header)
        compressed = batches[wire.BATCH_ATTRIBUTES] & layout.CODEC_MASK != 0
        body = np.where(gets_horizon, self._sizes[2], self._sizes[1])
        stored = sizes - np.where(self._is_v2, layout.HEADER_BYTES, 0)
        shrunk = np.rint(stored * (body / np.maximum(self._sizes[0], 1))).astype(np.int64)
        written = layout.HEADER_BYTES + np.where(compressed, shrunk, body)
        after = np.where(copied, sizes, np.where(anew, written, 0))
        after += np.where(keeps_header, layout.HEADER_BYTES, 0)
        counts.bytes_before += int(sizes.sum())
        counts.bytes_after += int(after.sum())
        counts.estimated_bytes += int(after[anew & compressed].sum())
        read = np.where(fates.is_read | ~self._is_v2, self._read, batches[wire.BATCH_RECORD_COUNT])
        counts.records_before += int(read[~control].sum())
        counts.records_after += int(self._kept[~control].sum())
        counts.null_keys += int(self._null_keys.sum())
        counts.tombstones_before += int(self._tombstones[0].sum())
        counts.tombstones_after += int(self._tombstones[1, ~control].sum())
        counts.markers_before += int(control.sum())
        counts.markers_after += int((control & (has_kept | keeps_header)).sum())
        horizons = np.where(gets_horizon, self._new_horizon, self._horizon)
        waits = has_kept & (gets_horizon | (self._has_horizon & (self._horizon > 0)))
        waits &= horizons > self._rules.now_ms
        if waits.any():
            least, earlier = int(horizons[waits].min()), counts.next_horizon_ms
            counts.next_horizon_ms = least if earlier is None else min(least, earlier)

    def _check(self, anew: Flags, keeps_header: Flags) -> None:
        """Look for a batch that Kafka does not write. Source: validateProducerState."""
        batches = self._batches
        producer, epoch = batches[wire.BATCH_PRODUCER_ID], batches[wire.BATCH_PRODUCER_EPOCH]
        transactional = anew & _has(batches, layout.TRANSACTIONAL)
        of_producer, no_sequence = anew & (producer != -1), batches[wire.BATCH_BASE_SEQUENCE] < 0
        for bad, reason in (
            (keeps_header & ~self._is_v2, _EMPTY_LEGACY),
            (transactional & (producer == -1), _NO_PRODUCER),
            (of_producer & (epoch == -1), _NO_EPOCH),
            (of_producer & no_sequence & ~self._control, _NO_SEQUENCE),
        ):
            for batch in np.flatnonzero(bad)[:1].tolist():
                raise CleanerThrowsError(int(batches[wire.BATCH_POSITION, batch]), reason)


def is_control(batches: wire.Batches) -> Flags:
    """Tell of each batch whether it is a control batch: markers, of format v2 alone."""
    return _has(batches, layout.CONTROL)


def _has_horizon(batches: wire.Batches) -> Flags:
    return _has(batches, layout.DELETE_HORIZON)


def _horizons(batches: wire.Batches) -> Int64s:
    horizons: Int64s = batches[wire.BATCH_BASE_TIMESTAMP]
    return horizons


def _has(batches: wire.Batches, flag: int) -> Flags:
    found: Flags = batches[wire.BATCH_ATTRIBUTES] & flag != 0
    found &= batches[wire.BATCH_MAGIC] >= layout.MAGIC_V2
    return found
