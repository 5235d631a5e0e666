"""One log under the fold: what crosses its segments is decided in order, its files published."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kafka_segments.errors import FileChangedError
from kafka_segments.index.log_recovery import LoadOptions, RecoveryMode, Verdict, fold_of
from kafka_segments.index.minute_index import MINUTE_INDEX_SUFFIX
from kafka_segments.index.offset_index import encode_offset_index
from kafka_segments.index.recovery import (
    DamageKind,
    RecoveryOptions,
    SegmentRecoverer,
    SegmentRecovery,
    SegmentSummary,
)
from kafka_segments.index.splitting import Piece, split_overflowed
from kafka_segments.index.time_index import encode_time_index
from kafka_segments.index.transactions import encode_transaction_index
from kafka_segments.storage.files import open_segment, place
from kafka_segments.storage.index_files import IndexOutput, IndexPublisher
from kafka_segments.wire.checkpoints import LEADER_EPOCHS
from kafka_segments.wire.names import SNAPSHOT_SUFFIX, file_name

_MAX_OFFSET = 2**63 - 1
_INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex", MINUTE_INDEX_SUFFIX)


class FoldOptions(NamedTuple):
    """How logs are recovered; crosses to the executors. ``output`` None: no files."""

    mode: RecoveryMode
    now_ms: int
    expiration_ms: int
    sources: tuple[str, ...]
    recovery: RecoveryOptions
    output: IndexOutput | None


class FoldedSegment(NamedTuple):
    """A segment as the fold needs it; ``key`` is that of its row, the base offset last."""

    key: tuple[Any, ...]
    source: str
    relative_path: str
    name: str
    log_start_offset: int
    is_scanned: bool
    summary: SegmentSummary


class _Held(NamedTuple):
    """A segment that does not fit its base offset, its pieces, and the verdicts on them so far."""

    segment: FoldedSegment
    pieces: list[Piece]
    verdicts: list[Verdict]

    def verdict(self) -> Verdict:
        refused = next((verdict for verdict in self.verdicts if verdict.damage), None)
        return refused or Verdict([entry for verdict in self.verdicts for entry in verdict.aborted])


class FoldedLog:
    """One log under the fold."""

    def __init__(
        self, options: FoldOptions, publisher: IndexPublisher | None, first: FoldedSegment
    ) -> None:
        """Start the log that ``first`` belongs to; no publisher: no files."""
        load = LoadOptions(
            now_ms=options.now_ms,
            expiration_ms=options.expiration_ms,
            log_start_offset=first.log_start_offset,
        )
        self.key = first.key[:-1]
        self._fold = fold_of(options.mode, load)
        self._is_load = options.mode != RecoveryMode.SEGMENT
        self._recovery = options.recovery
        self._publisher = publisher
        self._folder = (first.source, first.relative_path)
        self._snapshots: set[str] = set()
        self._held: list[tuple[int, Piece | None, _Held]] = []  # to take, the highest first

    def take(self, segment: FoldedSegment) -> Iterator[tuple[FoldedSegment, Verdict]]:
        """Take a segment, and give those that it decides.

        Segments come in base-offset order. To a load come first those that do not fit their base
        offset: it splits them, and the pieces can belong anywhere in the log.
        """
        if self._is_load and _overflows(segment):
            self._hold(segment)
        else:
            yield from self._take_held(segment.summary.base_offset)
            yield segment, self._take_whole(segment)

    def _hold(self, segment: FoldedSegment) -> None:
        held = _Held(segment, self._split(segment) or [], [])
        self._held += [(piece.base_offset, piece, held) for piece in held.pieces]
        if not held.pieces:
            self._held.append((segment.summary.base_offset, None, held))
        self._held.sort(key=lambda entry: entry[0], reverse=True)

    def _take_whole(self, segment: FoldedSegment) -> Verdict:
        base_offset = segment.summary.base_offset
        verdict = self._fold.take(segment.summary)
        if self._publisher is None:
            return verdict
        if verdict.damage is not None:
            self._publisher.withdraw(
                *self._folder, base_offset, _INDEX_SUFFIXES, is_new=segment.is_scanned
            )
        else:
            aborted = encode_transaction_index(verdict.aborted)
            self._publisher.publish(*self._folder, base_offset, {".txnindex": aborted})
        if verdict.snapshot is not None:
            self._snapshot(base_offset, verdict.snapshot)
        return verdict

    def _split(self, segment: FoldedSegment) -> list[Piece] | None:
        """Split a segment that does not fit its base offset: the only one that is read again."""
        folder = place(segment.source).child(segment.relative_path)
        try:
            with open_segment(folder.child(segment.name)) as file:
                pieces = split_overflowed(
                    SegmentRecoverer(self._recovery),
                    file.read_into,
                    size_bytes=file.size_bytes,
                    base_offset=segment.summary.base_offset,
                )
                file.check_unchanged()
                return pieces
        except (OSError, FileChangedError):
            return None

    def _take_held(self, end: int) -> Iterator[tuple[FoldedSegment, Verdict]]:
        """Take what is held up to a base offset; give the segments that this decides."""
        while self._held and self._held[-1][0] <= end:
            _, piece, held = self._held.pop()
            if piece is None:
                yield held.segment, self._take_whole(held.segment)
                continue
            held.verdicts.append(self._take_piece(*piece))
            if len(held.verdicts) == len(held.pieces):
                yield held.segment, held.verdict()

    def _take_piece(self, base_offset: int, found: SegmentRecovery) -> Verdict:
        verdict = self._fold.take(found.summary(base_offset))
        offsets, times = found.offset_entries, found.time_entries
        if self._publisher is None or offsets is None or times is None or verdict.damage:
            return verdict
        files = {
            ".index": encode_offset_index(offsets, base_offset=base_offset),
            ".timeindex": encode_time_index(times, base_offset=base_offset),
            ".txnindex": encode_transaction_index(verdict.aborted),
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

    def finish(self) -> Iterator[tuple[FoldedSegment, Verdict]]:
        """Take what is left, give the segments that it decides, publish the log's files."""
        yield from self._take_held(_MAX_OFFSET)
        files = self._fold.finish()
        if self._publisher is None or not self._is_load:
            return
        for offset, data in files.snapshots.items():
            self._snapshot(offset, data)
        self._publisher.publish_named(*self._folder, {LEADER_EPOCHS: files.leader_epochs})
        self._publisher.remove_others(*self._folder, SNAPSHOT_SUFFIX, keep=self._snapshots)


def _overflows(segment: FoldedSegment) -> bool:
    return segment.summary.damage_kind == DamageKind.OFFSET_OVERFLOW
