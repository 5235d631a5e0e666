"""A compacted topic and its copies, by plain loops: each copy rolls and cleans for itself.

The rule is Kafka's: of what lies in front of the active segment, the last record of each key stays;
a tombstone goes when it has been through one cleaning and its time is over; what was aborted and
what has no key goes at once, a marker once its transaction's records are gone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from support.logs.log_copies import Batch, LogCopy

KEYS = 40
RETENTION = 2  # moments that a tombstone stays after the first cleaning that kept it


@dataclass
class Topic:
    """What was written: batches of any length, some of transactions, each ended by a marker."""

    rng: random.Random
    batches: list[Batch] = field(default_factory=list)
    aborted: set[int] = field(default_factory=set)
    """Offsets of records whose transaction was aborted, or is open."""
    _open: dict[int, list[int]] = field(default_factory=dict)
    _offset: int = 0

    def write(self, count: int) -> None:
        for _ in range(count):
            producer = self.rng.choice([None, None, 7, 8])
            if producer in self._open and self.rng.random() < 0.5:
                self.end(producer)
            else:
                self._put(producer)

    def end_all(self) -> None:
        for producer in list(self._open):
            self.end(producer)

    def end(self, producer: int) -> None:
        is_commit = self.rng.random() < 0.6
        offsets = self._open.pop(producer)
        if is_commit:
            self.aborted -= set(offsets)
        self._add(Batch(self._offset, self._offset, 0, (), 0, producer, is_commit=is_commit))

    def _put(self, producer: int | None) -> None:
        count = self.rng.choice([1, 1, 2, 5])
        records = tuple((self._offset + at, self._key(), self._value()) for at in range(count))
        if producer is not None:
            offsets = [offset for offset, _, _ in records]
            self._open.setdefault(producer, []).extend(offsets)
            self.aborted |= set(offsets)
        self._add(Batch(self._offset, self._offset + count - 1, 0, records, 0, producer))

    def _key(self) -> bytes | None:
        return None if self.rng.random() < 0.03 else b"k%d" % self.rng.randrange(KEYS)

    def _value(self) -> bytes | None:
        return None if self.rng.random() < 0.2 else self.rng.randbytes(4)

    def _add(self, batch: Batch) -> None:
        self.batches.append(batch)
        self._offset = batch.last + 1


@dataclass
class Replica:
    """A copy's segments as (base offset, batches)."""

    rng: random.Random
    segments: list[tuple[int, list[Batch]]] = field(default_factory=lambda: [(0, [])])
    cleaned: int = 0
    _kept_until: dict[int, int] = field(default_factory=dict)

    def fetch(self, batches: list[Batch]) -> None:
        for batch in batches:
            if self.segments[-1][1] and self.rng.random() < 0.12:
                self.segments.append((batch.base, []))
            self.segments[-1][1].append(batch)

    @property
    def batches(self) -> list[Batch]:
        return [batch for _, held in self.segments for batch in held]

    def clean(self, topic: Topic, now: int) -> None:
        """Clean up to the active segment, or to one before it."""
        upto = self.rng.choice([base for base, _ in self.segments[1:]] or [0])
        if upto <= self.cleaned:
            return
        latest: dict[bytes, int] = {}
        for batch in self.batches:
            for offset, key, _ in batch.records:
                if self.cleaned <= offset < upto and offset not in topic.aborted and key:
                    latest[key] = offset
        cleaned = []
        for base, held in self.segments:
            kept = []
            for batch in held:
                if batch.base >= upto:
                    kept.append(batch)
                elif batch.is_commit is None:
                    stays = tuple(
                        one for one in batch.records if self._stays(one, latest, topic, now)
                    )
                    if stays:
                        kept.append(replace(batch, records=stays))
                elif self._needs(batch, topic):
                    kept.append(batch)
            if kept or base >= upto or base == 0:
                cleaned.append((base, kept))
        self.segments = cleaned
        self.cleaned = upto

    def _stays(
        self,
        record: tuple[int, bytes | None, bytes | None],
        latest: dict[bytes, int],
        topic: Topic,
        now: int,
    ) -> bool:
        offset, key, value = record
        if key is None or offset in topic.aborted or offset < latest.get(key, 0):
            return False
        return value is not None or now <= self._kept_until.setdefault(offset, now + RETENTION)

    def _needs(self, marker: Batch, topic: Topic) -> bool:
        """Tell whether a record stands before a marker since the last one of its producer."""
        before = [one for one in self.batches if one.base < marker.base]
        own = [one for one in before if one.producer_id == marker.producer_id]
        return bool(own) and own[-1].is_commit is None

    def copy(self) -> LogCopy:
        segments = [(base, [batch.written() for batch in held]) for base, held in self.segments]
        return LogCopy(segments, 0, 0, ((0, 0),), self.cleaned or None)


def lived(
    rng: random.Random, names: str, *, away: str = "", moments: int = 6
) -> tuple[Topic, dict[str, Replica]]:
    """Let copies of a topic live; those of ``away`` do not fetch in the last moments."""
    topic = Topic(rng)
    replicas = {name: Replica(rng) for name in names}
    fetched = dict.fromkeys(names, 0)
    for now in range(moments):
        topic.write(rng.randint(5, 30))
        topic.end_all()
        for name, replica in replicas.items():
            if name in away and now > moments // 2:
                continue
            replica.fetch(topic.batches[fetched[name] :])
            fetched[name] = len(topic.batches)
            if rng.random() < 0.6:
                replica.clean(topic, now)
    return topic, replicas
