"""Read a log as a pass of the cleaner does: the keys of what is dirty, then all that it cleans.

Source: Cleaner.doClean, buildOffsetMapForSegment, cleanSegments (4.3.1).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from kafka_segments.files.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.files.segments.decoding import MOST_BATCH_BYTES, record_filler
from kafka_segments.files.storage.files import Place
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.kafka.broker_rules.cleaner.log_cleaner import (
    Cleanable,
    CleanedLog,
    CleanerConfig,
    segments_between,
)
from kafka_segments.kafka.broker_rules.cleaner.one_pass import (
    CleanedBatches,
    Flags,
    LastRecord,
    PassRules,
    fates_of,
    is_control,
)
from kafka_segments.kafka.broker_rules.cleaner.outcome import (
    CleanerThrowsError,
    LogPass,
    PassCounts,
)
from kafka_segments.kafka.broker_rules.cleaner.sample import estimate, sample_of
from kafka_segments.kafka.text.names import LOG_SUFFIX, file_name
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import filling
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.key_offsets import KeyOffsets
from kafka_segments.kafka.wire.record_filling import RecordFiller
from kafka_segments.verbs.find.cleaner.configs import NodeConfig
from kafka_segments.verbs.find.cleaner.log_facts import LogReader, NotKnownError
from kafka_segments.verbs.find.cleaner.pass_transactions import (
    AbortedTransactions,
    PassTransactions,
)

_NS_A_MS = 1_000_000


def read_pass(
    folder: Place,
    entries: Sequence[FileEntry],
    log: CleanedLog,
    found: Cleanable,
    config: CleanerConfig,
    node: NodeConfig,
    *,
    now_ms: int,
    samples: bool = False,
) -> LogPass:
    """Say what a pass would make of a log of which something can be cleaned.

    Args:
        folder: the log's folder.
        entries: what lies there.
        log: what the cleaner goes by.
        found: what of it can be cleaned.
        config: its topic's settings.
        node: its node's.
        now_ms: the moment.
        samples: of the clean part only some segments are read.

    Raises:
        OSError: a file cannot be read.
        FileChangedError: a file became shorter.
    """
    reading = _PassReading(folder, entries, log, found)
    try:
        return reading.run(config, node, now_ms, samples=samples)
    except CleanerThrowsError as error:
        return LogPass(throws=f"{reading.file} byte {error.position}: {error}")
    except NotKnownError as error:
        return LogPass(unknown=f"{reading.file}: {error}" if reading.file else str(error))


class _PassReading:
    """Reads the segments of a pass; ``file`` is the one at which it is."""

    def __init__(
        self, folder: Place, entries: Sequence[FileEntry], log: CleanedLog, found: Cleanable
    ) -> None:
        self._log, self._found = log, found
        files = {entry.name: entry for entry in entries if not entry.is_folder and not entry.oddity}
        self._modified = {name: entry.mtime_ns // _NS_A_MS for name, entry in files.items()}
        self._bases = [one.base_offset for one in log.segments]
        sizes = {name: entry.size_bytes for name, entry in files.items()}
        self._reader = LogReader(folder, self._bases, sizes, log.checkpoint)
        self._chunks = ChunkReader(ChunkOptions(needs_body=True, max_batch_bytes=MOST_BATCH_BYTES))
        self._aborted = AbortedTransactions(folder, self._bases, sizes)
        self.file = ""

    def run(
        self, config: CleanerConfig, node: NodeConfig, now_ms: int, *, samples: bool
    ) -> LogPass:
        found, segments = self._found, self._log.segments
        producers = self._reader.producers(self._log.end).without_expired(
            now_ms=now_ms, expiration_ms=node.producer_expiration_ms
        )
        last = {
            producer_id: LastRecord(
                entry.batch.last_offset if entry.batch.last_offset >= 0 else None, entry.epoch
            )
            for producer_id, entry in producers.entries.items()
        }
        keys = KeyOffsets(node.keys_of_a_pass)
        latest = self._note_keys(keys)
        rules = PassRules(now_ms, config.delete_retention_ms, latest, found.end, last)
        clean = [one.base_offset for one in segments if one.base_offset < found.first_dirty]
        horizon = self._modified_at(clean[-1]) - config.delete_retention_ms if clean else 0
        counts, filler = PassCounts(), record_filler((True, True, True))
        all_clean = [base for base in clean if self._reader.end_of(base) <= found.first_dirty]
        left_out = set(all_clean) - set(sample_of(all_clean)) if samples else set()
        sample, transactions = [], PassTransactions(self._aborted)
        for base in [base for base in self._bases if base < latest + 1]:
            if base in left_out:
                transactions = PassTransactions(self._aborted)
                continue
            read, kept = counts.bytes_before, counts.bytes_after
            transactions.come_to(base, self._reader.end_of(base))
            keeps_old = self._modified_at(base) > horizon
            for chunk in self._read(base):
                self._clean(chunk, rules, transactions, keys, counts, filler, keeps_old=keeps_old)
            if base in all_clean:
                read, kept = counts.bytes_before - read, counts.bytes_after - kept
                sample.append((read, read - kept))
        if not left_out:
            return LogPass(latest + 1, counts)
        unread = sum(one.size_bytes for one in segments if one.base_offset in left_out)
        about = estimate(sample, segments=len(all_clean), total_bytes=unread)
        return LogPass(latest + 1, counts, about)

    def _note_keys(self, keys: KeyOffsets) -> int:
        """Note the keys of what is dirty; return the offset up to which they are noted."""
        start, end = self._found.first_dirty, self._found.end
        dirty = [one.base_offset for one in segments_between(self._log.segments, start, end)]
        transactions = PassTransactions(self._aborted)
        transactions.come_to(start, end)
        filler = record_filler((True, False, False))
        latest = -1
        for base, stop in zip(dirty, [*dirty[1:], end], strict=True):
            for chunk in self._read(base):
                full_at = self._note(chunk, start, transactions, keys, filler)
                if full_at is not None:
                    return max(latest, full_at - 1)
                latest = max(latest, int(chunk.batches[wire.BATCH_LAST_OFFSET, -1]))
            latest = max(latest, stop - 1)
        return latest

    def _note(
        self,
        chunk: Chunk,
        start: int,
        transactions: PassTransactions,
        keys: KeyOffsets,
        filler: RecordFiller,
    ) -> int | None:
        """Note the keys of some batches; return up to which offset, where no more had room."""
        batches = chunk.batches
        aborted = transactions.may_go(chunk)
        chosen = np.flatnonzero(~aborted & ~is_control(batches) & _has_records(batches))
        for rows in self._rows(chunk, chosen, filler):
            offsets = filler.columns.rows[filling.ROW_OFFSET, :rows]
            wanted = np.flatnonzero(~filler.columns.key.is_null[:rows] & (offsets >= start))
            noted = keys.put(filler.columns.key, wanted, offsets)
            if noted < len(wanted):
                batch = chosen[filler.columns.rows[filling.ROW_BATCH, wanted[noted]]]
                before = batches[wire.BATCH_LAST_OFFSET, :batch][-1:]
                last = (*before.tolist(), *offsets[wanted[:noted]][-1:].tolist(), -1)
                return 1 + int(max(last))
        return None

    def _clean(
        self,
        chunk: Chunk,
        rules: PassRules,
        transactions: PassTransactions,
        keys: KeyOffsets,
        counts: PassCounts,
        filler: RecordFiller,
        *,
        keeps_old: bool,
    ) -> None:
        fates = fates_of(chunk.batches, transactions.may_go(chunk), rules)
        cleaned = CleanedBatches(chunk.batches, fates, rules, keeps_old_tombstones=keeps_old)
        chosen = np.flatnonzero(fates.is_read & _has_records(chunk.batches))
        for rows in self._rows(chunk, chosen, filler):
            noted = keys.get(filler.columns.key, np.arange(rows))
            of_batch = chosen[filler.columns.rows[filling.ROW_BATCH, :rows]]
            cleaned.take(filler.columns, rows, noted, of_batch)
        cleaned.add_to(counts)

    def _rows(
        self, chunk: Chunk, chosen: np.typing.NDArray[np.intp], filler: RecordFiller
    ) -> Iterator[int]:
        """Decode some batches, piece by piece.

        Raises:
            CleanerThrowsError: one cannot be decoded.
            NotKnownError: one is too large to be read here.
        """
        batches = np.ascontiguousarray(chunk.batches[:, chosen])
        if not batches.shape[1]:
            return
        if chunk.data is None:
            raise NotKnownError(
                f"a batch has {batches[wire.BATCH_SIZE_BYTES, 0]} bytes, at most"
                f" {MOST_BATCH_BYTES} are read"
            )
        for rows in filler.fill(batches, chunk.data, chunk.data_position):
            for row, reason in filler.errors.items():
                bad = batches[:, int(filler.columns.rows[filling.ROW_BATCH, row])]
                raise CleanerThrowsError(int(bad[wire.BATCH_POSITION]), reason)
            yield rows

    def _read(self, base: int) -> Iterator[Chunk]:
        """Yield the batches of a segment.

        Raises:
            CleanerThrowsError: bytes are no batch.
            NotKnownError: a checksum does not fit, at which the cleaner does not look.
        """
        self.file = file_name(base, LOG_SUFFIX)
        end = 0
        with self._reader.opened(base) as (read_into, size):
            for chunk in self._chunks.read(read_into, size_bytes=size):
                if chunk.end_reason is not None and "checksum" in chunk.end_reason:
                    reason = f"byte {chunk.end_position}: {chunk.end_reason}"
                    raise NotKnownError(f"{reason}; the cleaner does not look at checksums")
                if chunk.end_reason is not None:
                    raise CleanerThrowsError(
                        chunk.end_position, f"CorruptRecordException: {chunk.end_reason}"
                    )
                if not chunk.batches.shape[1]:
                    continue
                magic = chunk.batches[wire.BATCH_MAGIC]
                unknown = np.flatnonzero((magic < 0) | (magic > layout.MAGIC_V2))
                for batch in unknown[:1].tolist():
                    raise CleanerThrowsError(
                        int(chunk.batches[wire.BATCH_POSITION, batch]),
                        f"CorruptRecordException: its magic is {magic[batch]}",
                    )
                last = chunk.batches[:, -1]
                end = int(last[wire.BATCH_POSITION] + last[wire.BATCH_SIZE_BYTES])
                yield chunk
            if end < size:
                raise CleanerThrowsError(end, "CorruptRecordException: zeros up to the file's end")

    def _modified_at(self, base: int) -> int:
        return self._modified[file_name(base, LOG_SUFFIX)]


def _has_records(batches: wire.Batches) -> Flags:
    has_records: Flags = batches[wire.BATCH_RECORD_COUNT] != 0
    return has_records
