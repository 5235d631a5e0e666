"""A log while it is mutated, its batches' fields, and the names of all kinds of mutations."""

from __future__ import annotations

import binascii
import random
import struct
from collections.abc import Callable
from typing import NamedTuple

from support.logs.sound_logs import CLOCK_MS, LogSegment, sound_log
from support.logs.strategies import MAX_INT32, crc32c

DAY_MS = 86_400_000
V2_FIELDS = {
    "base_offset": (0, "q"),
    "size": (8, "i"),
    "leader_epoch": (12, "i"),
    "magic": (16, "b"),
    "attributes": (21, "h"),
    "last_offset_delta": (23, "i"),
    "base_timestamp": (27, "q"),
    "max_timestamp": (35, "q"),
    "producer_id": (43, "q"),
    "producer_epoch": (51, "h"),
    "base_sequence": (53, "i"),
    "record_count": (57, "i"),
}
LEGACY_FIELDS = {
    "base_offset": (0, "q"),
    "size": (8, "i"),
    "magic": (16, "b"),
    "attributes": (17, "b"),
    "timestamp": (18, "q"),
}
MAGIC_AT, _CRC_V2, _CRC_LEGACY = 16, 17, 12
FIELD_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}


class LogSettings(NamedTuple):
    """What a broker recovers and loads a log with."""

    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10_485_760
    log_start_offset: int = 0
    now_ms: int = CLOCK_MS


class Case:
    """A log while it is mutated."""

    def __init__(self, rng: random.Random, style: str | None = None) -> None:
        self.rng = rng
        self.segments = sound_log(rng, style)
        self.leftovers: dict[str, bytes] = {}  # other files of the folder, by name
        self.settings = LogSettings(
            index_interval_bytes=rng.choice([0, 64, 64, 512, 512, 4096]),
            now_ms=CLOCK_MS + rng.choice([0, 0, DAY_MS]),
        )

    def some(self) -> LogSegment:
        """Choose a segment, one that is not empty where there is one."""
        return self.rng.choice(
            [segment for segment in self.segments if segment.log] or self.segments
        )

    def place(self, segment: LogSegment) -> int:
        """Choose a batch of a segment; the first and the last more often than others."""
        last = len(segment.batches) - 1
        return self.rng.choice([0, last, self.rng.randint(0, last), self.rng.randint(0, last)])

    def number_near(self, bits: int, old: int) -> int:
        """Draw a signed number of so many bits: ends, near the old one, powers of 2, any."""
        most = 2 ** (bits - 1) - 1
        drawn = self.rng.choice(
            [
                *(0, 1, 2, -1, -2, most, most - 1, -most - 1, -most, most // 2),
                *(old + 1, old - 1, old + self.rng.randint(-1000, 1000), -old, old ^ most),
                *(MAX_INT32, MAX_INT32 + 1, -MAX_INT32 - 1, old + MAX_INT32, CLOCK_MS),
                self.rng.getrandbits(bits),
                self.rng.getrandbits(self.rng.randint(1, bits)),
            ]
        )
        return _signed(drawn, bits)


def _signed(number: int, bits: int) -> int:
    number &= 2**bits - 1
    return number - 2**bits if number >> bits - 1 else number


def fit_crc(batch: bytes) -> bytes:
    """Give a batch the checksum that its bytes have; below magic 2 they are a message's."""
    if len(batch) <= _CRC_V2 + 4:
        return batch
    if struct.unpack_from(">b", batch, MAGIC_AT)[0] < 2:
        crc, at = binascii.crc32(batch[MAGIC_AT:]), _CRC_LEGACY
    else:
        crc, at = crc32c(batch[_CRC_V2 + 4 :]), _CRC_V2
    return batch[:at] + struct.pack(">I", crc) + batch[at + 4 :]


def fields_of(batch: bytes) -> dict[str, tuple[int, str]]:
    """Give the header fields of a batch by its magic."""
    fields = V2_FIELDS if len(batch) >= 61 and batch[MAGIC_AT] >= 2 else LEGACY_FIELDS
    return {
        name: (at, form)
        for name, (at, form) in fields.items()
        if at + FIELD_BITS[form] // 8 <= len(batch)
    }


def get(batch: bytes, name: str) -> int:
    """Read a header field; 0 where a batch has none of the name."""
    if name not in fields_of(batch):
        return 0
    at, form = fields_of(batch)[name]
    number: int = struct.unpack_from(f">{form}", batch, at)[0]
    return number


def with_field(batch: bytes, name: str, value: int) -> bytes:
    """Set a header field; a batch that has none of the name stays as it is."""
    if name not in fields_of(batch):
        return batch
    at, form = fields_of(batch)[name]
    packed = struct.pack(f">{form}", _signed(value, FIELD_BITS[form]))
    return fit_crc(batch[:at] + packed + batch[at + len(packed) :])


Mutation = Callable[[Case], None]
KINDS: dict[str, tuple[Mutation, str | None]] = {}


def kind(mutation: Mutation) -> Mutation:
    """Register a mutation of a log of any style under its name."""
    KINDS[mutation.__name__] = (mutation, None)
    return mutation


def kind_of(style: str) -> Callable[[Mutation], Mutation]:
    """Register a mutation of logs of one style under its name."""

    def register(mutation: Mutation) -> Mutation:
        KINDS[mutation.__name__] = (mutation, style)
        return mutation

    return register
