"""Logs of internal topics to which things happen, as brokers, controllers and cleaners do them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from support.logs import group_logs, metadata_logs
from support.logs.strategies import v2_batch

Stamp = tuple[int, int, bool]


class Written(NamedTuple):
    """A batch of one record: its offset, its bytes, and how to write it without the record."""

    offset: int
    data: bytes
    empty: bytes


class LivingLog:
    """A log on the disk; each step changes it in a way that is drawn."""

    def __init__(self, folder: Path, draw: random.Random, clock: Iterator[int]) -> None:
        """Begin with some records. ``clock`` gives the modification times of files, in seconds."""
        self.folder = folder
        self._draw = draw
        self._clock = clock
        self._is_metadata = folder.name.startswith("__cluster_metadata")
        self._epoch = 0
        self._segments: list[tuple[int, list[Written]]] = [(0, [])]
        folder.mkdir(parents=True)
        self._append()

    def step(self) -> None:
        """Let one thing happen, or nothing."""
        steps: list[Callable[[], None]] = [
            *(lambda: None, self._append, self._append, self._roll, self._roll_without_a_record),
            *(self._truncate, self._follow_another_leader, self._delete_the_first, self._tear),
        ]
        steps += [self._snapshot] * 2 if self._is_metadata else [self._clean] * 3
        self._draw.choice(steps)()

    @property
    def _next_offset(self) -> int:
        written = [batch.offset for _, batches in self._segments for batch in batches]
        return max([self._segments[-1][0], *(offset + 1 for offset in written)])

    def _batch(self, offset: int) -> Written:
        number = self._draw.randrange(5)
        if self._is_metadata:
            value = self._draw.choice(
                [
                    metadata_logs.no_op(),
                    metadata_logs.feature(f"feature-{number}", self._draw.randrange(9)),
                    metadata_logs.config(f"topic-{number}", "retention.ms", str(offset)),
                ]
            )
            record = (metadata_logs.START_MS + 1_000 * offset, None, value)
        else:
            value = self._draw.choice([None, group_logs.commit_value(offset)])
            key = group_logs.commit_key("g" * self._draw.randint(1, 9), number)
            record = (group_logs.START_MS + offset, key, value)
        empty = v2_batch(offset, [], leader_epoch=self._epoch, record_count=0)
        return Written(offset, v2_batch(offset, [record], leader_epoch=self._epoch), empty)

    def _append(self) -> None:
        for _ in range(self._draw.randint(1, 4)):
            self._segments[-1][1].append(self._batch(self._next_offset))
        self._write(self._segments[-1][0])

    def _roll_without_a_record(self) -> None:
        if self._segments[-1][1]:
            self._segments.append((self._next_offset, []))
            self._write(self._segments[-1][0])

    def _roll(self) -> None:
        self._roll_without_a_record()
        self._append()

    def _truncate(self) -> None:
        """Cut the log off before an offset."""
        end = self._draw.randint(self._segments[0][0], self._next_offset)
        for base, batches in list(self._segments[1:]):
            if base >= end:
                self._segments.remove((base, batches))
                self._file(base).unlink()
        base, batches = self._segments[-1]
        if any(batch.offset >= end for batch in batches):
            batches[:] = [batch for batch in batches if batch.offset < end]
            self._write(base)

    def _follow_another_leader(self) -> None:
        """Cut the log off, and write other records at the same offsets."""
        self._truncate()
        self._epoch += 1
        self._append()

    def _delete_the_first(self) -> None:
        if len(self._segments) > 1:
            self._file(self._segments.pop(0)[0]).unlink()

    def _clean(self) -> None:
        """Take records from a closed segment, or from two that become one.

        As the cleaner does it, the last batch stays, be it empty, and the time of the file too.
        """
        if len(self._segments) < 2:
            return
        first = self._draw.randrange(len(self._segments) - 1)
        is_joined = first + 2 < len(self._segments) and self._draw.random() < 0.5
        joined = self._segments[first : first + (2 if is_joined else 1)]
        modified = self._file(joined[-1][0]).stat().st_mtime
        batches = [batch for _, found in joined for batch in found]
        kept = [batch for batch in batches if self._draw.random() < 0.5]
        if batches and batches[-1] not in kept:
            kept.append(batches[-1]._replace(data=batches[-1].empty))
        for base, _ in joined[1:]:
            self._file(base).unlink()
        self._segments[first : first + len(joined)] = [(joined[0][0], kept)]
        self._write(joined[0][0], modified)

    def _tear(self) -> None:
        """Leave a batch that is not there to its end, as after a crash."""
        base, _ = self._segments[-1]
        torn = self._batch(self._next_offset).data
        self._write(base, tail=torn[: self._draw.randrange(1, len(torn))])

    def _snapshot(self) -> None:
        end = self._next_offset
        records = [metadata_logs.feature("of-a-snapshot", end % 100)]
        name = f"{end:020d}-{self._epoch:010d}.checkpoint"
        data = metadata_logs.snapshot_bytes(records, end_offset=end, epoch=self._epoch)
        (self.folder / name).write_bytes(data)
        self._touch(self.folder / name, next(self._clock))

    def _file(self, base: int) -> Path:
        return self.folder / f"{base:020d}.log"

    def _write(self, base: int, modified: float | None = None, tail: bytes = b"") -> None:
        batches = next(batches for found, batches in self._segments if found == base)
        self._file(base).write_bytes(b"".join(batch.data for batch in batches) + tail)
        self._touch(self._file(base), next(self._clock) if modified is None else modified)

    def _touch(self, file: Path, modified: float) -> None:
        os.utime(file, (modified, modified))

    def stamps(self) -> dict[Path, Stamp]:
        """Give what tells that a file changed: size, time, and whether it is the last segment."""
        logs = sorted(self.folder.glob("*.log"))
        return {
            file: (file.stat().st_size, file.stat().st_mtime_ns, file == logs[-1])
            for file in [*logs, *self.folder.glob("*.checkpoint")]
            if file.stat().st_size
        }
