"""The fold over one log: what crosses its segments is decided in order, its files are published."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from kafka_segments.engine.derived.topic_sizes import TopicSizes, recovery_of
from kafka_segments.errors import FileChangedError
from kafka_segments.files.changes.index_files import IndexOutput, IndexPublisher
from kafka_segments.files.storage.files import open_segment, place
from kafka_segments.kafka.index.formats.by_name import ALL_SUFFIXES
from kafka_segments.kafka.index.log.damages import ends_below
from kafka_segments.kafka.index.log.load import LogLoad
from kafka_segments.kafka.index.log.loading import (
    LoadOptions,
    LogFiles,
    RecoveryMode,
    SegmentVerdict,
)
from kafka_segments.kafka.index.log.recovery import fold_of
from kafka_segments.kafka.index.log.rereading import producers_between, reaches
from kafka_segments.kafka.index.segment.offset_index import encode_offset_index
from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary
from kafka_segments.kafka.index.segment.recovered_segment import Damage, DamageKind, SegmentSummary
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.splitting import Piece, shifted, split_overflowed
from kafka_segments.kafka.index.segment.time_index import encode_time_index
from kafka_segments.kafka.index.segment.transaction_index import encode_transaction_index
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS
from kafka_segments.kafka.text.names import (
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_name,
)
from kafka_segments.kafka.wire.reading import ReadInto

_MAX_OFFSET = 2**63 - 1


class FoldOptions(NamedTuple):
    """How logs are recovered; the options cross to the executors.

    ``output`` is None if no files are written.
    """

    mode: RecoveryMode
    now_ms: int
    expiration_ms: int
    sources: tuple[str, ...]
    recovery: RecoveryOptions
    output: IndexOutput | None
    sizes: TopicSizes | None = None


class FoldedSegment(NamedTuple):
    """A segment as the fold needs it; ``key`` has the values of ``SEGMENT_KEYS``."""

    key: tuple[Any, ...]
    source: str
    relative_path: str
    name: str
    log_start_offset: int
    is_scanned: bool
    summary: SegmentSummary


class _Held(NamedTuple):
    """A segment that does not fit its base offset, its pieces, and the verdicts on these so far."""

    segment: FoldedSegment
    pieces: list[Piece]
    verdicts: list[SegmentVerdict]

    def verdict(self) -> SegmentVerdict:
        said = [verdict for verdict in self.verdicts if verdict.damage]
        if said and len(said) < len(self.verdicts):  # a cut piece takes the later ones with it
            said = [verdict for verdict in said if not _is_removed(verdict)]
        refused = next(iter(said), None)
        return refused or SegmentVerdict(
            [entry for verdict in self.verdicts for entry in verdict.aborted]
        )


_FIRST_TRY, _TAKE = 0, 1  # what is to be done with one that is held
_Decided = tuple[FoldedSegment, SegmentVerdict]


class FoldedLog:
    """The fold over one log."""

    def __init__(
        self, options: FoldOptions, publisher: IndexPublisher | None, first: FoldedSegment
    ) -> None:
        """Start with the log of segment ``first``; without a publisher no files are written."""
        settings = LoadOptions(
            now_ms=options.now_ms,
            expiration_ms=options.expiration_ms,
            log_start_offset=first.log_start_offset,
        )
        self.key = first.key[:-1]
        self._new_fold = partial(fold_of, options.mode, settings, self._read_again, self._reaches)
        self._fold = self._new_fold()
        self._load = self._fold if isinstance(self._fold, LogLoad) else None
        cluster, broker_id, _, topic, *_ = first.key
        self._recovery = recovery_of(options.recovery, options.sizes, cluster, broker_id, topic)
        self._publisher = publisher
        self._folder = (first.source, first.relative_path)
        self._snapshots: set[str] = set()
        self._places: dict[int, tuple[str, int]] = {}  # by base offset: file, where in it
        self._pieces: dict[int, int] = {}  # the split segment's base offset, by the piece's
        self._recoverer: SegmentRecoverer | None = None
        self._log_start = first.log_start_offset
        self._pending: list[_Decided] = []  # the last one that the log goes on after, and ...
        self._overflowed: list[FoldedSegment] = []  # that may be split ...
        self._before: list[FoldedSegment] = []  # ... and what lies before the last of them
        self._held: list[tuple[int, int, Piece | None, _Held]] = []  # to take, the highest first

    def take(self, segment: FoldedSegment) -> Iterator[tuple[FoldedSegment, SegmentVerdict]]:
        """Take a segment, and yield those that are decided by now.

        Segments come in the order of their base offsets. If the log is loaded, the segments that
        do not fit their base offset come first: a load splits them, and the pieces can belong
        anywhere in the log. The load can fail at the end of the log, so the last segment is
        decided there.
        """
        if self._load is not None and _overflows(segment):
            self._overflowed.append(segment)
        elif self._overflowed and _base_offset(segment) < _base_offset(self._overflowed[-1]):
            self._before.append(segment)
        else:
            yield from self._take_split()
            yield from self._take_fitting(segment)

    def _take_fitting(self, segment: FoldedSegment) -> Iterator[_Decided]:
        split = self._pieces.get(_base_offset(segment))
        if split is not None:
            yield segment, _overwritten(split)
            return
        yield from self._take_held(_base_offset(segment))
        yield from self._decided(segment, self._take_whole(segment))

    def _take_split(self) -> Iterator[_Decided]:
        """Split what does not fit its base offset, if the load comes that far, and go on."""
        overflowed, before = self._overflowed, self._before
        self._overflowed, self._before = [], []
        is_met = bool(overflowed) and not self._stops_before(overflowed[0], before)
        for segment in overflowed:
            split = self._pieces.get(_base_offset(segment))
            if split is not None:
                yield segment, _overwritten(split)
                continue
            self._hold(segment, (self._split(segment) or []) if is_met else [])
        for segment in before:
            yield from self._take_fitting(segment)

    def _stops_before(self, overflowed: FoldedSegment, segments: list[FoldedSegment]) -> bool:
        """Tell whether the load ends at one of the segments before one that does not fit."""
        first_try = self._new_fold()
        for segment in segments:
            if _base_offset(segment) < _base_offset(overflowed):
                self._places[_base_offset(segment)] = (segment.name, 0)
                first_try.take(segment.summary)
        return isinstance(first_try, LogLoad) and first_try.has_stopped()

    def _decided(self, segment: FoldedSegment, verdict: SegmentVerdict) -> Iterator[_Decided]:
        """Yield what is decided; the last sound segment waits for the end of the log.

        So do all that begin below the log start, until one begins there or above: if the log ends
        below its start, all of them go.
        """
        if verdict.damage is not None:
            yield segment, verdict
            return
        if self._load is None or _base_offset(segment) >= self._log_start:
            yield from self._pending
            self._pending = []
        self._pending.append((segment, verdict))

    def _hold(self, segment: FoldedSegment, pieces: list[Piece]) -> None:
        held = _Held(segment, pieces, [])
        if held.pieces:
            lowest = min(piece.base_offset for piece in held.pieces)
            first_try = min(lowest, _base_offset(segment))
            self._held.append((first_try, _FIRST_TRY, None, held))
        for piece in held.pieces:
            self._places[piece.base_offset] = (segment.name, piece.position)
            if piece.base_offset != _base_offset(segment):
                self._pieces[piece.base_offset] = _base_offset(segment)
        self._held += [(piece.base_offset, _TAKE, piece, held) for piece in held.pieces]
        if not held.pieces:
            self._held.append((_base_offset(segment), _TAKE, None, held))
        self._held.sort(key=lambda entry: entry[:2], reverse=True)

    def _take_whole(self, segment: FoldedSegment) -> SegmentVerdict:
        base_offset = _base_offset(segment)
        self._places[base_offset] = (segment.name, 0)
        if self._load is not None and segment.name.endswith(SWAP_SUFFIX):
            verdict = self._load.take(segment.summary, has_indexes=True)
        else:
            verdict = self._fold.take(segment.summary)
        publisher = self._publisher
        if publisher is None or publisher.leaves_alone(
            truncated_bytes=segment.summary.truncated_bytes
        ):
            return verdict
        if verdict.damage is not None:
            publisher.withdraw(*self._folder, base_offset, ALL_SUFFIXES, is_new=segment.is_scanned)
        else:
            aborted = encode_transaction_index(verdict.aborted)
            publisher.publish(*self._folder, base_offset, {TXN_INDEX_SUFFIX: aborted})
        if verdict.snapshot is not None:
            self._snapshot(base_offset, verdict.snapshot)
        return verdict

    def _split(self, segment: FoldedSegment) -> list[Piece] | None:
        """Split a segment that does not fit its base offset; its file is read again for this."""
        folder = place(segment.source).child(segment.relative_path)
        try:
            with open_segment(folder.child(segment.name)) as file:
                pieces = split_overflowed(
                    self._its_recoverer(),
                    file.read_into,
                    size_bytes=file.size_bytes,
                    base_offset=_base_offset(segment),
                )
                file.check_unchanged()
                return pieces
        except (OSError, FileChangedError):
            return None

    def _its_recoverer(self) -> SegmentRecoverer:
        self._recoverer = self._recoverer or SegmentRecoverer(self._recovery)
        return self._recoverer

    @contextmanager
    def _opened(self, segment: SegmentSummary) -> Iterator[ReadInto]:
        """Open the file that has a segment; a piece of a split one begins behind its start."""
        name, position = self._places[segment.base_offset]
        with open_segment(place(self._folder[0]).child(self._folder[1], name)) as opened:
            yield shifted(opened.read_into, position)

    def _read_again(
        self, segment: SegmentSummary, start_offset: int, end_offset: int | None
    ) -> ProducerSummary:
        """Summarize the producers of the batches that a load reads again where offsets go back.

        If the file is gone, the summary of the whole segment stands for it.
        """
        try:
            with self._opened(segment) as read_into:
                return producers_between(
                    self._its_recoverer(),
                    read_into,
                    size_bytes=segment.valid_bytes,
                    base_offset=segment.base_offset,
                    start_offset=start_offset,
                    end_offset=end_offset,
                )
        except (OSError, FileChangedError):
            return segment.producers

    def _reaches(self, segment: SegmentSummary, offset: int | None) -> bool:
        """Look up an offset as a load does at its end; if the file is gone, it counts as found."""
        try:
            with self._opened(segment) as read_into:
                return reaches(
                    self._its_recoverer(),
                    read_into,
                    size_bytes=segment.valid_bytes,
                    base_offset=segment.base_offset,
                    offset=offset,
                )
        except (OSError, FileChangedError):
            return True

    def _take_held(self, end: int) -> Iterator[tuple[FoldedSegment, SegmentVerdict]]:
        """Take what is held back up to a base offset, and yield the segments that this decides."""
        load = self._load
        while load is not None and self._held and self._held[-1][0] <= end:
            _, step, piece, held = self._held.pop()
            if step == _FIRST_TRY:
                load.take_first_try(held.segment.summary)
                continue
            if piece is None:
                yield from self._decided(held.segment, self._take_whole(held.segment))
                continue
            held.verdicts.append(self._take_piece(load, piece))
            if len(held.verdicts) == len(held.pieces):
                yield from self._decided(held.segment, held.verdict())

    def _take_piece(self, load: LogLoad, piece: Piece) -> SegmentVerdict:
        base_offset, found, _ = piece
        verdict = load.take(found.summary(base_offset), has_indexes=True)
        offsets, times = found.offset_entries, found.time_entries
        if self._publisher is None or offsets is None or times is None or verdict.damage:
            return verdict
        files = {
            OFFSET_INDEX_SUFFIX: encode_offset_index(offsets, base_offset=base_offset),
            TIME_INDEX_SUFFIX: encode_time_index(times, base_offset=base_offset),
            TXN_INDEX_SUFFIX: encode_transaction_index(verdict.aborted),
        }
        self._publisher.publish(*self._folder, base_offset, files)
        if verdict.snapshot is not None:
            self._snapshot(base_offset, verdict.snapshot)
        return verdict

    def _snapshot(self, offset: int, data: bytes) -> None:
        name = file_name(offset, SNAPSHOT_SUFFIX)
        self._snapshots.add(name)
        if self._publisher is not None:
            self._publisher.publish_named(*self._folder, {name: data})

    def finish(self) -> Iterator[tuple[FoldedSegment, SegmentVerdict]]:
        """Take what is left, yield the segments not decided yet, and publish the log's files.

        A log that does not load gets no such files, and those of earlier runs are removed.
        """
        yield from self._take_split()
        yield from self._take_held(_MAX_OFFSET)
        files = self._fold.finish()
        yield from self._ended(files)
        if self._publisher is None or self._load is None:
            return
        if files.leader_epochs is None or files.begins_at is not None:
            self._snapshots.clear()
        for offset, data in files.snapshots.items():
            self._snapshot(offset, data)
        self._publisher.publish_named(*self._folder, {LEADER_EPOCHS: files.leader_epochs})
        self._publisher.remove_others(*self._folder, SNAPSHOT_SUFFIX, keep=self._snapshots)

    def _ended(self, files: LogFiles) -> Iterator[_Decided]:
        """Yield what has waited for the end of the log."""
        pending, self._pending = self._pending, []
        if files.begins_at is not None:
            damage = ends_below(files.begins_at)
            for segment, _ in pending:
                yield segment, self._refused(segment, damage)
            self._begin_anew(files.begins_at)
            return
        if pending and files.refused is not None:
            segment, _ = pending.pop()
            pending.append((segment, self._refused(segment, files.refused)))
        yield from pending

    def _begin_anew(self, base_offset: int) -> None:
        """Publish the index files of the empty segment that a log begins with where it starts.

        None beside the segments: a broker makes its own.
        """
        publisher = self._publisher
        if publisher is None:
            return
        for piece in self._pieces:
            publisher.withdraw(*self._folder, piece, ALL_SUFFIXES, is_new=True)
        if not publisher.is_beside_segments():
            files = {OFFSET_INDEX_SUFFIX: b"", TIME_INDEX_SUFFIX: b"", TXN_INDEX_SUFFIX: None}
            publisher.publish(*self._folder, base_offset, files)

    def _refused(self, segment: FoldedSegment, damage: Damage) -> SegmentVerdict:
        """Take back the index files of the segment at whose end the load fails."""
        if self._publisher is not None:
            base_offset = _base_offset(segment)
            self._publisher.withdraw(
                *self._folder, base_offset, ALL_SUFFIXES, is_new=segment.is_scanned
            )
        return SegmentVerdict(damage=damage)


def _is_removed(verdict: SegmentVerdict) -> bool:
    return verdict.damage is not None and verdict.damage.kind == DamageKind.REMOVED


def _overwritten(split: int) -> SegmentVerdict:
    message = (
        f"a load splits segment {split} and gives one piece the name of this segment: the broker"
        " overwrites it"
    )
    return SegmentVerdict(damage=Damage(DamageKind.REMOVED, 0, message))


def _base_offset(segment: FoldedSegment) -> int:
    return segment.summary.base_offset


def _overflows(segment: FoldedSegment) -> bool:
    return segment.summary.damage_kind == DamageKind.OFFSET_OVERFLOW
