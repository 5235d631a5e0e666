"""A source that grows between builds: batches are added, segments rolled, partitions made.

What lies in it is counted while it is written, by nothing of ``kafka_segments``.
"""

import random
import struct
from pathlib import Path
from typing import NamedTuple

from support.logs.sound_logs import SoundLog

_RECORDS = struct.Struct(">i")
_RECORDS_AT = 57
_INTERVAL_BYTES = 4096  # Kafka's index.interval.bytes


class Counted(NamedTuple):
    """What a segment holds: ``entries`` of an offset index as (offset, position)."""

    size_bytes: int = 0
    batches: int = 0
    records: int = 0
    next_offset: int = 0
    entries: tuple[tuple[int, int], ...] = ()
    indexed_position: int = 0

    def with_batch(self, batch: bytes, next_offset: int) -> "Counted":
        """Count one more batch, and give it an entry as LogSegment.recover does."""
        is_indexed = self.size_bytes - self.indexed_position > _INTERVAL_BYTES
        entry = ((next_offset - 1, self.size_bytes),) if is_indexed else ()
        return Counted(
            self.size_bytes + len(batch),
            self.batches + 1,
            self.records + _RECORDS.unpack_from(batch, _RECORDS_AT)[0],
            next_offset,
            self.entries + entry,
            self.size_bytes if is_indexed else self.indexed_position,
        )


Key = tuple[str, int, int]
"""Topic, partition, base offset of a segment."""


class GrowingLogs:
    """The logs of a topic below a folder, and what each of their segments holds."""

    def __init__(self, folder: Path, rng: random.Random, *, topic: str = "grows") -> None:
        self._folder, self._rng, self._topic = folder, rng, topic
        self._logs: list[tuple[SoundLog, int]] = []
        self.segments: dict[Key, Counted] = {}
        self.grow()

    def grow(self) -> None:
        """Write to a log or two: now and then a new one, or into a new segment."""
        for _ in range(self._rng.choice([1, 1, 2])):
            if not self._logs or self._rng.random() < 0.1:
                log = SoundLog(self._rng, (2,), 0.0)
                self._logs.append((log, log.offset))
            number = self._rng.randrange(len(self._logs))
            log, base_offset = self._logs[number]
            if self._rng.random() < 0.15:
                base_offset = log.offset
                self._logs[number] = log, base_offset
            self._append(number, log, base_offset)

    def _append(self, number: int, log: SoundLog, base_offset: int) -> None:
        key = self._topic, number, base_offset
        counted = self.segments.get(key, Counted(next_offset=base_offset))
        folder = self._folder / f"{self._topic}-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{base_offset:020d}.log").open("ab") as file:
            for _ in range(self._rng.choice([1, 3, 8])):
                batch = log.batch()
                file.write(batch)
                counted = counted.with_batch(batch, log.offset)
        self.segments[key] = counted
