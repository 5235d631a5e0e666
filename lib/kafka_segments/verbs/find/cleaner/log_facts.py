"""Read what the cleaner goes by of a log: its segments, its end, where a transaction is open."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kafka_segments.errors import (
    CorruptIndexError,
    InvalidTransactionError,
    UnreadableBatchError,
)
from kafka_segments.files.segments.segment_ends import read_segment_end
from kafka_segments.files.storage.files import Place, open_segment, place, read_whole
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.kafka.broker_rules.cleaner.log_cleaner import (
    CleanedLog,
    CleanedSegment,
    CleanerConfig,
)
from kafka_segments.kafka.broker_rules.gaps import (
    LACKS_END,
    Cleaned,
    Gap,
    gap_behind,
    told_gap,
)
from kafka_segments.kafka.broker_rules.start.replays import kept_snapshots, snapshots_of
from kafka_segments.kafka.index.log.producer_state import ProducerState
from kafka_segments.kafka.index.log.rereading import producers_between
from kafka_segments.kafka.index.log.snapshots import decode_snapshot
from kafka_segments.kafka.index.segment.batch_reading import headers
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.text.names import (
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    file_name,
    parse_partition_folder,
    parse_segment_name,
)
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire.reading import ReadInto

_MOST_SNAPSHOT_BYTES = 1024 * 1024 * 1024
_MOST_REREAD_BYTES = 4 * 1024 * 1024 * 1024
_NS_A_MS = 1_000_000


class NotKnownError(Exception):
    """Why what the cleaner makes of a log is not known."""


def read_log(
    uri: str,
    folder: str,
    entries: Sequence[FileEntry],
    noted: Mapping[str, int],
    config: CleanerConfig,
    *,
    rolls_before_ms: int | None = None,
) -> CleanedLog:
    """Read what the cleaner goes by.

    Args:
        uri: its log directory.
        folder: its folder's name.
        entries: what lies there.
        noted: what its log directory's checkpoints have of it: ``log_start_offset``,
            ``high_watermark`` (without one it counts as the end), ``cleaner_offset``.
        config: what of it is needed depends on its settings.
        rolls_before_ms: as if the active segment had been rolled if it began before a moment.

    Raises:
        NotKnownError: it has no segment, something else is in the place of one, it ends below its
            high watermark, or its end or its open transactions cannot be told, as where a segment
            is missing that may have what began or ended one.
        OSError: a file cannot be read.
        FileChangedError: a file became shorter.
    """
    here = place(uri).child(folder)
    files = {entry.name: entry for entry in entries if not entry.is_folder and not entry.oddity}
    for entry in entries:
        if entry.name not in files and parse_segment_name(entry.name) is not None:
            raise NotKnownError(f"{entry.name} is {entry.oddity or 'a folder'}")
    bases = sorted(base for name in files if (base := parse_segment_name(name)) is not None)
    if not bases:
        raise NotKnownError("it has no segment")
    sizes = {name: entry.size_bytes for name, entry in files.items()}
    found = read_segment_end(here, bases[-1], sizes)
    end = found.kept_offset if found.next_offset is None else found.next_offset
    if end is None:
        raise NotKnownError(
            f"where it ends is not known: {found.problem or 'its last index entry'}"
        )
    noted_end = noted.get("high_watermark", end)
    if end < noted_end:
        raise NotKnownError(LACKS_END % (end, noted_end))
    start = min(max(noted.get("log_start_offset", 0), bases[0]), end)
    watermark = max(noted_end, start)
    if found.problem is not None:  # what lies behind, as zeros of a preallocated file, is no batch
        sizes[file_name(bases[-1], LOG_SUFFIX)] = found.valid_bytes
    reader = LogReader(here, bases, sizes, noted.get("cleaner_offset"))
    is_rolled = rolls_before_ms is not None and reader.begins_before(bases[-1], rolls_before_ms)
    active = end if is_rolled else bases[-1]
    segments = [
        CleanedSegment(
            base,
            sizes[file_name(base, LOG_SUFFIX)],
            reader.largest_timestamp(base, files)
            if config.needs_timestamps and base != active
            else None,
            reader.first_batch_timestamp(base) if config.needs_first_batches else None,
        )
        for base in bases
    ]
    segments += [CleanedSegment(end, 0)] if is_rolled else []
    unstable = reader.first_unstable(watermark, start)
    return CleanedLog(segments, start, end, watermark, unstable, noted.get("cleaner_offset"))


class LogReader:
    """Reads of a log what only its bytes tell.

    ``cleaned`` is its entry in ``cleaner-offset-checkpoint``; None: it has none.
    """

    def __init__(
        self, folder: Place, bases: Sequence[int], sizes: Mapping[str, int], cleaned: int | None
    ) -> None:
        parsed = parse_partition_folder(folder.path.rpartition("/")[2])
        self._topic = "" if parsed is None else parsed.topic
        self._cleaned = Cleaned(cleaned is not None, cleaned)
        self._folder, self._bases, self._sizes = folder, bases, sizes
        self._recoverer = SegmentRecoverer(RecoveryOptions(check_crc=False))

    def begins_before(self, base: int, ms: int) -> bool:
        """Tell whether a segment began before a moment, as rolling by time has it."""
        first = self.first_batch_timestamp(base)
        return first is not None and 0 <= first <= ms

    def largest_timestamp(self, base: int, files: Mapping[str, FileEntry]) -> int:
        """Return a segment's greatest timestamp, else when its file was written."""
        with self.opened(base) as (read_into, size):
            found = self._recoverer.recover(read_into, size_bytes=size, base_offset=base)
        if found.max_timestamp >= 0:
            return found.max_timestamp
        return files[file_name(base, LOG_SUFFIX)].mtime_ns // _NS_A_MS

    def first_batch_timestamp(self, base: int) -> int | None:
        """Return the greatest timestamp of a segment's first batch; None: it has no batch."""
        with self.opened(base) as (read_into, size):
            batches = next(iter(headers(read_into, 0, size)), None) if size else None
        return None if batches is None else int(batches[wire.BATCH_MAX_TIMESTAMP, 0])

    def first_unstable(self, watermark: int, start: int) -> int | None:
        """Return where the first transaction begins that is open at an offset; None: none is.

        Of those that begin in the active segment, which is not cleaned, that is not asked.
        """
        offset, state = self._snapshot(watermark)
        if offset < self._bases[-1] or state.open:
            state = self._replayed(state, offset, watermark)
        found = state.first_unstable_offset()
        return None if found is None else max(found, start)

    def producers(self, end: int) -> ProducerState:
        """Return what producers have sent up to an offset."""
        offset, state = self._snapshot(end)
        return self._replayed(state, offset, end)

    def _replayed(self, state: ProducerState, offset: int, watermark: int) -> ProducerState:
        """Add what is between two offsets to a state."""
        if offset == watermark:
            return state
        read = [base for base in self._bases if base < watermark and self.end_of(base) > offset]
        if sum(map(self._size_of, read)) > _MOST_REREAD_BYTES:
            raise NotKnownError("no snapshot of its producers is near its end: see `audit`")
        gaps: list[tuple[Gap, str | None]] = []
        for base in read:
            with self.opened(base) as (read_into, size):
                try:
                    summary = producers_between(
                        self._recoverer,
                        read_into,
                        size_bytes=size,
                        base_offset=base,
                        start_offset=max(offset, base),
                        end_offset=watermark,
                    )
                    state.apply(summary)
                except InvalidTransactionError as error:
                    raise NotKnownError(f"segment {base}: {error}") from None
                if base != self._bases[-1]:
                    gaps += self._gap_behind(base, read_into, size, offset)
        _refuse_lost(gaps, state.first_unstable_offset(), watermark)
        return state

    def _gap_behind(
        self, base: int, read_into: ReadInto, size: int, offset: int
    ) -> Iterator[tuple[Gap, str | None]]:
        """Yield the gap behind a segment from an offset on; None: compaction may have left it."""
        found = self._recoverer.recover(read_into, size_bytes=size, base_offset=base)
        after = self.end_of(base)
        gap = gap_behind(found.next_offset, after, log_start=offset)
        if gap is None:
            return
        told = told_gap(
            self._topic,
            base,
            found.next_offset,
            after,
            records=found.record_count,
            by=self._cleaned,
            log_start=offset,
        )
        is_torn = found.truncated_bytes > 0
        yield gap, told.found if told else gap.found() if is_torn else None

    def end_of(self, base: int) -> int:
        """Return where the next segment begins; of the last one: behind all offsets."""
        later = self._bases[self._bases.index(base) + 1 :]
        return later[0] if later else 2**63 - 1

    def _snapshot(self, watermark: int) -> tuple[int, ProducerState]:
        """Return the newest snapshot up to an offset that can be read, with its offset."""
        kept = kept_snapshots(snapshots_of(self._sizes), frozenset(self._bases))
        for offset in reversed([each for each in kept if each <= watermark]):
            file = self._folder.child(file_name(offset, SNAPSHOT_SUFFIX))
            try:
                data = read_whole(file, most_bytes=_MOST_SNAPSHOT_BYTES)
                return offset, decode_snapshot(data)
            except CorruptIndexError:
                continue
        return self._bases[0], ProducerState()

    @contextmanager
    def opened(self, base: int) -> Iterator[tuple[ReadInto, int]]:
        """Open a segment; give how its bytes are read, and how many of them count.

        Raises:
            NotKnownError: bytes are no batch where whoever opened it reads.
        """
        name = file_name(base, LOG_SUFFIX)
        with open_segment(self._folder.child(name)) as opened:
            try:
                yield opened.read_into, min(opened.size_bytes, self._size_of(base))
            except UnreadableBatchError as error:
                raise NotKnownError(f"{name}: {error}") from None

    def _size_of(self, base: int) -> int:
        return self._sizes[file_name(base, LOG_SUFFIX)]


def _refuse_lost(
    gaps: Sequence[tuple[Gap, str | None]], unstable: int | None, watermark: int
) -> None:
    """Refuse to say what is open where the begin or the end of a transaction may be missing.

    Behind the begin of an open transaction the cleaner never was, and of one that has ended it
    keeps the marker as long as it keeps a record: what is missing there is none of its gaps.

    Source: LogCleanerManager.cleanableOffsets, CleanedTransactionMetadata.onControlBatchRead.
    """
    for gap, lost in gaps:
        if gap.first >= watermark:
            continue
        if unstable is not None and unstable < gap.end:
            ended = f"the transaction that is open since offset {unstable} may have ended there"
            raise NotKnownError(f"{lost or gap.found()}; {ended}")
        if lost is not None:
            raise NotKnownError(f"{lost}; a transaction may have begun there")
