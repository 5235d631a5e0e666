"""How much is read at once, drawn: what a reader knows must outlive the end of each piece.

A segment is read by buffers, windows and chunks, its batches and records come some rows at a time.
Drawn logs are mostly smaller than any of them, so they are made small, too.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

LEAST_BYTES = 61  # a header must fit
IN_BYTES = (
    ("kafka.index.segment.segment_walker", "_BUFFER_BYTES"),
    ("kafka.index.segment.segment_walker", "_HEADERS_BUFFER_BYTES"),
    ("kafka.index.segment.batch_reading", "_WINDOW_BYTES"),
    ("kafka.index.segment.few_batches", "WINDOW_BYTES"),
    ("files.segments.chunks", "_CHUNK_BYTES"),
    ("files.segments.chunks", "_HEADERS_CHUNK_BYTES"),
    ("verbs.copies.divergence.log_reading.sound_batches", "_WINDOW_BYTES"),
    ("kafka.broker_rules.start.torn_tail", "_WINDOW_BYTES"),
    ("verbs.find.search.first_record", "_WINDOW_BYTES"),
)
IN_ROWS = (
    ("kafka.index.segment.walk_rows", "_EPOCHS"),
    ("files.segments.chunks", "_MOST_BATCHES"),
    ("kafka.wire.record_filling", "_MOST_ROWS"),
)


@contextmanager
def small_pieces(rng: random.Random) -> Iterator[dict[str, int]]:
    """Read by pieces of drawn sizes; gives those that differ from what a build takes."""
    sizes = {}
    with ExitStack() as stack:
        for places, draw in ((IN_BYTES, _bytes), (IN_ROWS, _rows)):
            for room, name in places:
                size = draw(rng)
                if size is not None:
                    module = importlib.import_module(f"kafka_segments.{room}")
                    stack.enter_context(mock.patch.object(module, name, size))
                    sizes[f"{room}.{name}"] = size
        yield sizes


def _bytes(rng: random.Random) -> int | None:
    drawn = rng.randint(LEAST_BYTES, 5000)
    return rng.choice([None, LEAST_BYTES, LEAST_BYTES + 1, 97, 512, 1000, 4096, drawn, drawn])


def _rows(rng: random.Random) -> int | None:
    return rng.choice([None, None, 1, 2, 3, 50])
