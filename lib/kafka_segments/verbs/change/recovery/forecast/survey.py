"""Look into the segments that a start recovers: how many batches they have, and where they end."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kafka_segments.errors import FileChangedError, UnreadableObjectError
from kafka_segments.files.node.producer_snapshots import by_sound_snapshots
from kafka_segments.files.storage.files import Place, first_line, open_segment, place, read_whole
from kafka_segments.kafka.broker_rules.start.cuts import (
    DamagedSegment,
    Finding,
    decide_findings,
)
from kafka_segments.kafka.broker_rules.start.log_start import LogStart
from kafka_segments.kafka.broker_rules.start.node import sum_or_none
from kafka_segments.kafka.broker_rules.start.torn_tail import records_by_headers
from kafka_segments.kafka.index.segment.offset_index import decode_offset_index
from kafka_segments.kafka.index.segment.recovered_segment import Damage, DamageKind, SegmentRecovery
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.splitting import split_overflowed
from kafka_segments.kafka.text.names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SWAP_SUFFIX, file_name
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.verbs.change.recovery.forecast.decide.kits import work_with_kit
from kafka_segments.verbs.change.recovery.forecast.decide.times import LogWork

_ZEROS = (DamageKind.PREALLOCATED_TAIL,)
_SMALL_BYTES = 4 * 1024 * 1024
_SAMPLES = 6
_SAMPLE_BYTES = 512 * 1024
_MOST_INDEX_BYTES = 64 * 1024 * 1024


class Surveyed(NamedTuple):
    """A log's start, its work without and with a kit, and the damage that it finds.

    ``unread_bytes``: of segments that a start recovers, or reads for the producers' state, and that
    were looked at in part or not.
    """

    start: LogStart
    work: LogWork
    kit_work: LogWork
    findings: tuple[Finding, ...]
    problem: str | None = None
    unread_bytes: int = 0


class Surveyor:
    """Surveys logs one after another; a thread has one of its own.

    ``is_full``: every segment that is recovered is read, checksums and all, and of those that are
    read for the producers' state the headers. Without it those of a log are if they are small
    together; else only the last one is, from its last index entry on, and of a few others some
    batches are counted.
    """

    def __init__(self, *, is_full: bool) -> None:
        self._is_full = is_full
        self._headers = SegmentRecoverer(RecoveryOptions(check_crc=False))
        self._checked = SegmentRecoverer(RecoveryOptions(is_load=True))

    def survey(self, start: LogStart) -> Surveyed:
        """Survey a log."""
        folder = place(start.log.log_dir).child(start.log.folder)
        damaged: dict[int, DamagedSegment] = {}
        counts: dict[int, int] = {}
        records: dict[int, int | None] = {}
        density, problem = 0.0, None
        written: dict[int, int] = {}
        reads_all = reads_replayed = self._is_full
        try:
            start = by_sound_snapshots(folder, start)
            written = self._written(folder, start)
            sizes = {**start.sizes, **written}
            reads_all |= sum(sizes[base] for base in start.recovered) <= _SMALL_BYTES
            reads_replayed |= sum(sizes[base] for base in start.read) <= _SMALL_BYTES
            for base in start.recovered if reads_all else start.recovered[-1:]:
                recovery = self._recover(folder, start, base, reads_all=reads_all)
                if recovery is None:
                    continue
                if reads_all:
                    counts[base] = recovery.batch_count
                if recovery.damage is not None and recovery.damage.kind in _ZEROS:
                    written[base] = recovery.valid_bytes
                    if base == start.recovered[-1]:
                        continue  # zeros behind the last batch of a log are no loss
                records[base] = recovery.record_count
                if recovery.damage is not None:
                    damaged[base] = self._damaged(folder, start, base, recovery)
                    records[base] = sum_or_none([recovery.record_count, damaged[base].cut_records])
            density = self._density(folder, start, counts)
            if reads_replayed:
                problem = self._unreadable_replay(folder, start)
        except (OSError, FileChangedError, UnreadableObjectError) as error:
            problem = f"{start.log.folder}: {first_line(error)}"
        findings, start = decide_findings(start, damaged, records)
        sizes = {**start.sizes, **written}
        work = _work(start, density, counts, sizes)
        with_kit = work_with_kit(start, work, damaged)
        unread = 0 if reads_all else sum(sizes[base] for base in start.recovered)
        unread += 0 if reads_replayed else start.bytes_of(start.replayed)
        return Surveyed(start, work, with_kit, tuple(findings), problem, unread)

    def _written(self, folder: Place, start: LogStart) -> dict[int, int]:
        """Return the bytes that were ever written of segments that may be preallocated."""
        found = {}
        for base in start.recovered[-1:]:
            with open_segment(_file(folder, start, base), reads_ahead=False) as file:
                if file.written_bytes is not None:
                    found[base] = file.written_bytes
        return found

    def _recover(
        self, folder: Place, start: LogStart, base: int, *, reads_all: bool
    ) -> SegmentRecovery | None:
        """Recover a segment; of the last one only its end, if that is sound."""
        with open_segment(_file(folder, start, base)) as file:
            size = file.size_bytes
            if not reads_all:
                begin = self._last_entry(folder, start, base, size)
                if begin and self._is_sound(file.read_into, begin, size, base):
                    return None
            found = self._checked.recover(
                file.read_into,
                size_bytes=size,
                base_offset=base,
                written_bytes=file.written_bytes,
            )
            return self._split(file.read_into, size, base, found)

    def _split(
        self, read_into: ReadInto, size: int, base: int, found: SegmentRecovery
    ) -> SegmentRecovery:
        """Tell a segment that a start splits from one that it refuses to split."""
        damage = found.damage
        if damage is None or damage.kind != DamageKind.OFFSET_OVERFLOW:
            return found
        if split_overflowed(self._checked, read_into, size_bytes=size, base_offset=base):
            return found
        message = f"{damage.message}; a broker does not split it, and ends"
        refused = Damage(DamageKind.UNREADABLE_CUT, damage.position, message)
        return found._replace(damage=refused)

    def _is_sound(self, read_into: ReadInto, begin: int, size: int, base: int) -> bool:
        """Tell whether a segment is sound from a batch on to its end."""

        def read_rest(position: int, view: memoryview) -> int:
            return read_into(begin + position, view)

        rest = self._checked.recover(read_rest, size_bytes=size - begin, base_offset=base)
        return rest.damage is None

    def _last_entry(self, folder: Place, start: LogStart, base: int, size: int) -> int:
        """Return the position of the last batch that the offset index names, 0 if it names none."""
        name = file_name(base, OFFSET_INDEX_SUFFIX)
        if name not in start.log.files:
            return 0
        data = read_whole(folder.child(name), most_bytes=_MOST_INDEX_BYTES)
        entries = decode_offset_index(data, base_offset=base)
        positions = entries[entries[:, 1] < size, 1]
        return int(positions.max()) if len(positions) else 0

    def _damaged(
        self, folder: Place, start: LogStart, base: int, recovery: SegmentRecovery
    ) -> DamagedSegment:
        damage = recovery.damage
        assert damage is not None  # noqa: S101  for mypy: its caller has looked
        with open_segment(_file(folder, start, base)) as file:
            end = file.size_bytes
            cut_at = end - recovery.truncated_bytes
            records = records_by_headers(file.read_into, start=cut_at, end=end)
        return DamagedSegment(damage, recovery.truncated_bytes, records, recovery.next_offset)

    def _unreadable_replay(self, folder: Place, start: LogStart) -> str | None:
        """Return where batches cannot be read that a start reads for the producers' state."""
        for base in start.replayed:
            with open_segment(_file(folder, start, base)) as file:
                found = self._headers.recover(
                    file.read_into, size_bytes=file.size_bytes, base_offset=base
                )
            if found.damage is not None:
                name = f"{start.log.folder}/{file_name(base, LOG_SUFFIX)}"
                return (
                    f"not known whether the log loads: the start reads {name} for the producers'"
                    f" state, {found.damage.message} at byte {found.damage.position}"
                )
        return None

    def _density(self, folder: Place, start: LogStart, counts: Mapping[int, int]) -> float:
        """Return how many batches a byte holds, counted at the beginning of a few segments.

        Nothing is read where the batches of all segments have been counted: ``counts``.
        """
        read = [base for base in (*start.replayed, *start.recovered) if start.sizes[base]]
        if counts.keys() >= set(read):
            return 0.0
        chosen = {read[k] for k in np.linspace(0, len(read) - 1, _SAMPLES).astype(int)}
        batches = size = 0
        for base in chosen:
            with open_segment(_file(folder, start, base)) as file:
                sample = min(file.size_bytes, _SAMPLE_BYTES)
                found = self._headers.recover(file.read_into, size_bytes=sample, base_offset=base)
            batches += found.batch_count
            size += found.valid_bytes
        return batches / size if size else 0.0


def _file(folder: Place, start: LogStart, base: int) -> Place:
    """Return where a segment's log lies; that of a finished swap still ends in ``.swap``."""
    name = file_name(base, LOG_SUFFIX)
    return folder.child(name if name in start.log.files else name + SWAP_SUFFIX)


def _work(
    start: LogStart, density: float, counts: dict[int, int], sizes: Mapping[int, int]
) -> LogWork:
    """Return the work of a start; ``sizes``: bytes of segments, without zeros never written."""

    def batches(bases: Sequence[int]) -> float:
        return sum(counts.get(base, density * sizes[base]) for base in bases)

    def bytes_of(bases: Sequence[int]) -> int:
        return sum(sizes[base] for base in bases)

    twice = tuple(base for base in start.lacking if base in set(start.unflushed))
    return LogWork(
        segments=len(start.sizes),
        recovered_segments=len(start.recovered),
        recovered_bytes=bytes_of(start.recovered),
        recovered_batches=batches(start.recovered),
        replayed_bytes=bytes_of(start.replayed),
        replayed_batches=batches(start.replayed),
        twice_segments=len(twice),
        twice_bytes=bytes_of(twice),
        twice_batches=batches(twice),
    )
