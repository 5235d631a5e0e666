"""The last offset of each key."""

import random

import numpy as np

from kafka_segments.kafka.wire.filling import Bytes
from kafka_segments.kafka.wire.key_offsets import KeyOffsets


def _column(keys: list[bytes]) -> Bytes:
    ends = np.cumsum([0, *map(len, keys)]).astype(np.int32)
    data = np.frombuffer(b"".join(keys), dtype=np.uint8)
    return Bytes(data, ends, np.zeros(len(keys), dtype=np.bool_))


def _drawn(rng: random.Random, count: int) -> list[bytes]:
    """Keys of which many are the same, or differ in a byte or in their length alone."""
    stems = [rng.randbytes(rng.randrange(40)) for _ in range(50)]
    return [rng.choice(stems) + bytes(rng.randrange(3)) for _ in range(count)]


def test_each_key_has_its_last_offset(seed: int) -> None:
    rng = random.Random(seed)
    keys = [*_drawn(rng, 3000), *(b"%d" % number for number in range(3000))]
    offsets = np.arange(len(keys), dtype=np.int64) * 2
    rows = np.flatnonzero(np.array([rng.random() < 0.8 for _ in keys]))
    table = KeyOffsets(1_000_000)

    assert table.put(_column(keys), rows, offsets) == len(rows)

    expected = {keys[row]: offsets[row] for row in rows}
    found = table.get(_column(keys), np.arange(len(keys)))
    assert found.tolist() == [expected.get(key, -1) for key in keys]
    assert len(table) == len(expected)


def test_the_first_row_that_has_no_room_ends_it() -> None:
    keys = [b"a", b"b", b"a", b"c", b"a"]
    table = KeyOffsets(2)

    assert table.put(_column(keys), np.arange(5), np.arange(5)) == 2  # as Kafka's map: when full
    assert table.get(_column(keys), np.arange(5)).tolist() == [0, 1, 0, -1, 0]
    assert table.put(_column(keys), np.arange(5), np.arange(5)) == 0
