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
        self._batches: dict[Key, list[tuple[bytes, int]]] = {}
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

    def cut(self) -> None:
        """Cut a log's last segment behind one of its batches; now and then others follow."""
        number = self._rng.randrange(len(self._logs))
        log, base_offset = self._logs[number]
        key = self._topic, number, base_offset
        batches = self._batches.get(key, [])
        if len(batches) > 1:
            del batches[self._rng.randrange(1, len(batches)) :]
            log.offset = batches[-1][1]
            self._write(key)
            if self._rng.random() < 0.5:
                self._append(number, log, base_offset)

    def counted(self) -> tuple[dict[Key, tuple[int, int]], list[tuple[Key, int, int]]]:
        """Give the bytes and records of each segment, and the entries of all offset indexes."""
        entries = [(key, *one) for key, found in self.segments.items() for one in found.entries]
        sizes = {key: (found.size_bytes, found.records) for key, found in self.segments.items()}
        return sizes, sorted(entries)

    def _append(self, number: int, log: SoundLog, base_offset: int) -> None:
        key = self._topic, number, base_offset
        batches = self._batches.setdefault(key, [])
        batches += [(log.batch(), log.offset) for _ in range(self._rng.choice([1, 3, 8]))]
        self._write(key)

    def _write(self, key: Key) -> None:
        topic, partition, base_offset = key
        counted, data = Counted(next_offset=base_offset), b""
        for batch, next_offset in self._batches[key]:
            counted = counted.with_batch(batch, next_offset)
            data += batch
        folder = self._folder / f"{topic}-{partition}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{base_offset:020d}.log").write_bytes(data)
        self.segments[key] = counted
