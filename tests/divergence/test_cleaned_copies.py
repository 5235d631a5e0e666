"""Copies that Kafka's log cleaner was at, at moments of their own: no difference is a fault."""

import random
import struct
from pathlib import Path

from kafka_segments.verbs.copies.divergence.decide.copies import DifferenceKind
from support.kafka.kafka_referee import Referee
from support.logs.log_copies import CLOCK_MS, LogCopy, compared
from support.logs.sound_logs import ABORT, COMMIT, LZ4, Producer, compressed, marker
from support.logs.strategies import TRANSACTIONAL, v2_batch, v2_record

ROUNDS = 2
DAY_MS = 86_400_000


class CompactedTopic:
    """Draws the log of a compacted topic: few keys, tombstones, transactions, leader epochs."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.batches: list[tuple[int, bytes]] = []
        self.offset = 0
        self.epochs: list[tuple[int, int]] = [(0, 0)]
        self._producers = [Producer(number, 0, 0, number % 2 == 0) for number in range(1, 5)]

    def write(self, count: int, at_ms: int) -> None:
        """Append batches of a moment."""
        rng = self._rng
        for _ in range(count):
            if rng.random() < 0.03:
                self.epochs.append((self.epochs[-1][0] + 1, self.offset))
            producer = rng.choice(self._producers)
            if producer.is_open and rng.random() < 0.4:
                self._end(producer, at_ms)
            else:
                self._put(producer, at_ms)

    def end_all(self, at_ms: int) -> None:
        """End the transactions that are open."""
        for producer in self._producers:
            if producer.is_open:
                self._end(producer, at_ms)

    def _end(self, producer: Producer, at_ms: int) -> None:
        producer.is_open = False
        key = struct.pack(">hh", 0, self._rng.choice([ABORT, COMMIT, COMMIT]))
        value = struct.pack(">hi", 0, 0)
        batch = marker(
            self.offset, at_ms, producer, key=key, value=value, leader_epoch=self.epochs[-1][0]
        )
        self._add(batch, 1)

    def _put(self, producer: Producer, at_ms: int) -> None:
        rng, count = self._rng, self._rng.choice([1, 1, 2, 5, 20])
        records = [
            (
                at_ms,
                b"key %d" % rng.randrange(40),
                None if rng.random() < 0.2 else rng.randbytes(rng.randrange(30)),
            )
            for _ in range(count)
        ]
        codec = rng.choice([0, 0, LZ4])
        payload = b"".join(
            v2_record(timestamp_delta=0, offset_delta=delta, key=key, value=value)
            for delta, (_, key, value) in enumerate(records)
        )
        batch = v2_batch(
            self.offset,
            records,
            leader_epoch=self.epochs[-1][0],
            codec=codec,
            flags=TRANSACTIONAL if producer.is_transactional else 0,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=producer.sequence,
            payload=compressed(payload, codec),
        )
        producer.sequence += count
        producer.is_open = producer.is_transactional
        self._add(batch, count)

    def _add(self, batch: bytes, count: int) -> None:
        self.batches.append((self.offset, batch))
        self.offset += count


class Replica:
    """A replica's folder, rolled and cleaned when it likes."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder, self._rng = folder, rng
        self.clean: int | None = None
        folder.mkdir(parents=True)

    def fetch(self, batches: list[tuple[int, bytes]]) -> None:
        """Append what the leader has."""
        logs = sorted(self._folder.glob("*.log"))
        path = logs[-1] if logs else None
        for base, batch in batches:
            if path is None or self._rng.random() < 0.08:
                path = self._folder / f"{base:020d}.log"
            with path.open("ab") as stream:
                stream.write(batch)

    def clean_now(self, referee: Referee, at_ms: int) -> None:
        """Let the log cleaner at it."""
        self.clean = referee.clean_log(self._folder, first_dirty=self.clean or 0, now_ms=at_ms)

    def copy(self, epochs: list[tuple[int, int]], *, has_checkpoint: bool) -> LogCopy:
        """Give the copy as it lies there."""
        logs = sorted(self._folder.glob("*.log"))
        segments = [(int(path.stem), [path.read_bytes()]) for path in logs]
        clean = self.clean if has_checkpoint else None
        return LogCopy(segments, segments[0][0], epochs=tuple(epochs), cleaner_offset=clean)


def test_copies_that_were_compacted_at_other_moments_are_no_fault(
    referee: Referee, seed: int, tmp_path: Path
) -> None:
    rng = random.Random(f"{seed} cleaned")
    kinds = set()
    for number in range(ROUNDS):
        topic = CompactedTopic(rng)
        replicas = {name: Replica(tmp_path / str(number) / name / "t-0", rng) for name in "abc"}
        fetched = 0
        for day in range(4):
            at_ms = CLOCK_MS + day * DAY_MS
            topic.write(rng.randint(20, 60), at_ms)
            topic.end_all(at_ms)
            for name, replica in replicas.items():
                replica.fetch(topic.batches[fetched:])
                if name != "c" and rng.random() < 0.7:
                    replica.clean_now(referee, at_ms + rng.randrange(DAY_MS))
            fetched = len(topic.batches)
        for has_checkpoint in (True, False):
            rows = compared(
                {
                    name: replica.copy(topic.epochs, has_checkpoint=has_checkpoint)
                    for name, replica in replicas.items()
                }
            )
            assert [row for row in rows if row.is_finding] == []
            kinds |= {row.kind for row in rows}

    assert DifferenceKind.COMPACTION in kinds
