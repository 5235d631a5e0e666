"""Look into the segments that a start recovers: how many batches they have, and where they end."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kafka_segments.errors import FileChangedError, UnreadableObjectError
from kafka_segments.index.offset_index import decode_offset_index
from kafka_segments.index.recovery import RecoveryOptions, SegmentRecoverer
from kafka_segments.index.segment import SegmentRecovery
from kafka_segments.recovery.decide.cuts import DamagedSegment, Finding, decide_findings, total
from kafka_segments.recovery.decide.kits import work_with_kit
from kafka_segments.recovery.decide.starts import LogStart
from kafka_segments.recovery.decide.times import Work
from kafka_segments.recovery.torn_tail import records_told
from kafka_segments.storage.files import Place, first_line, open_segment, place, read_whole
from kafka_segments.wire.names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SWAP_SUFFIX, file_name
from kafka_segments.wire.reading import ReadInto

_SAMPLES = 6
_SAMPLE_BYTES = 512 * 1024
_MOST_INDEX_BYTES = 64 * 1024 * 1024


class Surveyed(NamedTuple):
    """A log's start, its work with and without a kit, and what it finds on the way."""

    start: LogStart
    work: Work
    kit_work: Work
    findings: tuple[Finding, ...]
    problem: str | None = None


class Surveyor:
    """Surveys logs one after another; a thread has one of its own.

    ``is_full``: every segment that is recovered is read, checksums and all. Else the last one is,
    from its last index entry on, and some batches' headers of a few others are counted.
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
        try:
            for base in self._bases_read(start):
                recovery = self._recover(folder, start, base)
                if self._is_full and recovery is not None:
                    counts[base] = recovery.batch_count
                if recovery is None:
                    continue
                records[base] = recovery.record_count
                if recovery.damage is not None:
                    damaged[base] = self._damaged(folder, start, base, recovery)
                    records[base] = total([recovery.record_count, damaged[base].cut_records])
            density = self._density(folder, start)
        except (OSError, FileChangedError, UnreadableObjectError) as error:
            problem = f"{start.log.folder}: {first_line(error)}"
        findings, start = decide_findings(start, damaged, records)
        work = _work(start, density, counts)
        with_kit = work_with_kit(start, work, damaged)
        return Surveyed(start, work, with_kit, tuple(findings), problem)

    def _bases_read(self, start: LogStart) -> Sequence[int]:
        return start.recovered if self._is_full else start.recovered[-1:]

    def _recover(self, folder: Place, start: LogStart, base: int) -> SegmentRecovery | None:
        """Recover a segment, or its end if it is the last one and its end is sound."""
        with open_segment(_file(folder, start, base)) as file:
            size = file.size_bytes
            if not self._is_full:
                begin = self._last_entry(folder, start, base, size)
                if begin and self._is_sound(file.read_into, begin, size, base):
                    return None
            return self._checked.recover(file.read_into, size_bytes=size, base_offset=base)

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
            records = records_told(file.read_into, start=cut_at, end=end)
        return DamagedSegment(damage, recovery.truncated_bytes, records)

    def _density(self, folder: Place, start: LogStart) -> float:
        """Return the batches a byte in the beginning of a few segments."""
        read = [base for base in (*start.replayed, *start.recovered) if start.sizes[base]]
        if not read:
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
    """Return the place of a segment's log; a finished swap has not got its name yet."""
    name = file_name(base, LOG_SUFFIX)
    return folder.child(name if name in start.log.files else name + SWAP_SUFFIX)


def _work(start: LogStart, density: float, counts: dict[int, int]) -> Work:
    def batches(bases: Sequence[int]) -> float:
        return sum(counts.get(base, density * start.sizes[base]) for base in bases)

    twice = tuple(base for base in start.lacking if base in set(start.unflushed))
    return Work(
        segments=len(start.sizes),
        recovered_segments=len(start.recovered),
        recovered_bytes=start.bytes_of(start.recovered),
        recovered_batches=batches(start.recovered),
        replayed_bytes=start.bytes_of(start.replayed),
        replayed_batches=batches(start.replayed),
        twice_segments=len(twice),
        twice_bytes=start.bytes_of(twice),
        twice_batches=batches(twice),
    )
