"""Copies that Kafka's log cleaner was at, at moments of their own: no difference is a fault."""

import random
from pathlib import Path

from kafka_segments.verbs.copies.divergence.decide.copies import DifferenceKind
from support.kafka.kafka_referee import Referee
from support.logs.compacted_topic import CompactedTopic, Replica
from support.logs.log_copies import CLOCK_MS, compared

ROUNDS = 2
DAY_MS = 86_400_000


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
