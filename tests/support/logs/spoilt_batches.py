"""Batches of every kind, and what spoils one so that its records cannot be read, or could not."""

import random
import struct
from collections.abc import Callable

from support.logs.strategies import (
    GZIP,
    crc32c,
    gzip_wrapper,
    transaction_marker,
    v1_message,
    v2_batch,
)

TIME = 1_700_000_000_000
Batch = tuple[int, int, bytes]  # first offset, the one behind the last, bytes
Spoil = Callable[[random.Random, bytes], bytes]


def _sealed(batch: bytes) -> bytes:
    """Give a batch v2 the checksum of its bytes."""
    return batch[:17] + struct.pack(">I", crc32c(batch[21:])) + batch[21:]


def _flipped(rng: random.Random, batch: bytes, first: int, end: int | None = None) -> bytes:
    at = rng.randrange(first, len(batch) if end is None else end)
    return batch[:at] + bytes([batch[at] ^ (1 << rng.randrange(8))]) + batch[at + 1 :]


def put(batch: bytes, at: int, data: bytes) -> bytes:
    """Return a batch with other bytes from one on."""
    return batch[:at] + data + batch[at + len(data) :]


FAULTS: dict[str, Spoil] = {
    "a bit of the records": lambda rng, batch: _flipped(rng, batch, 61),
    "a bit of the checksum": lambda rng, batch: _flipped(rng, batch, 17, 21),
    "a bit of the records under a right checksum": lambda rng, batch: _sealed(
        _flipped(rng, batch, 61)
    ),
    "more records than there are": lambda rng, batch: _sealed(
        put(batch, 57, struct.pack(">i", 99))
    ),
    "fewer records than there are": lambda rng, batch: _sealed(
        put(batch, 57, struct.pack(">i", struct.unpack(">i", batch[57:61])[0] - 1))
    ),
    "records that do not count": lambda rng, batch: _sealed(put(batch, 57, bytes(4))),
    "no record count": lambda rng, batch: _sealed(put(batch, 57, struct.pack(">i", -1))),
    "a codec that nobody knows": lambda rng, batch: _sealed(put(batch, 22, b"\x05")),
    "gzip without gzip": lambda rng, batch: _sealed(put(batch, 22, bytes([GZIP]))),
    "a record's length": lambda rng, batch: _sealed(put(batch, 61, b"\xff\xff\xff\xff\x0f")),
    "a negative length of a record": lambda rng, batch: _sealed(put(batch, 61, b"\x01")),
    "records cut off": lambda rng, batch: _sealed(
        put(batch[: 61 + (len(batch) - 61) // 2], 8, struct.pack(">i", 49 + (len(batch) - 61) // 2))
    ),
    "zeros for records": lambda rng, batch: _sealed(put(batch, 61, bytes(len(batch) - 61))),
}


STRUCTURES: dict[str, Spoil] = {
    "zeros": lambda _, batch: bytes(len(batch)),
    "a length below the least": lambda _, batch: put(batch, 8, struct.pack(">i", 5)),
    "a length beyond the file": lambda _, batch: put(batch, 8, struct.pack(">i", 10**6)),
    "a negative length": lambda _, batch: put(batch, 8, struct.pack(">i", -9)),
}
"""What makes of a batch bytes that are none."""


def sound_batches(rng: random.Random) -> list[Batch]:
    """Draw batches: several records each, gzipped ones, with a producer, markers, messages v1."""
    batches: list[Batch] = []
    offset = 0
    for _ in range(rng.randrange(3, 9)):
        count = rng.randrange(1, 5)
        kind = rng.randrange(6)
        records = [(TIME + k, b"k%d" % k, rng.randbytes(rng.randrange(80))) for k in range(count)]
        if kind == 0:
            count, data = 1, transaction_marker(offset, timestamp=TIME, producer_id=7)
        elif kind == 1:
            inner = [v1_message(k, TIME, b"k", b"v") for k in range(count)]
            data = gzip_wrapper(inner, offset=offset + count - 1, timestamp=TIME)
        else:
            producer = 7 if kind == 2 else -1
            codec = GZIP if kind == 3 else 0
            headers = [("trace", b"1")] if kind == 4 else ()
            data = v2_batch(offset, records, codec=codec, producer_id=producer, headers=headers)
        batches.append((offset, offset + count, data))
        offset += count
    return batches
