"""Ranges of offsets that batches lie in."""

import random

from kafka_segments.verbs.copies.divergence.decide.spans import Spans


def test_batches_meet_the_ranges_that_share_an_offset_with_them(seed: int) -> None:
    rng = random.Random(f"{seed} spans")
    for _ in range(50):
        bases = [rng.randrange(60) for _ in range(rng.randrange(6))]
        ranges = [(base, base + rng.randint(1, 9)) for base in bases]
        spans = Spans(ranges)
        covered = [at for one in spans for at in range(*one)]
        assert covered == sorted({at for one in ranges for at in range(*one)})
        for base in range(70):
            last = base + rng.randrange(4)
            offsets = set(range(base, last + 1))
            shared = any(offsets & set(range(*one)) for one in ranges)
            assert spans.meets(base, last) == shared
