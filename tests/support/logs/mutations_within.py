"""Mutations within a segment: bytes, whatever they mean, and one batch."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from support.logs.mutation_case import (
    FIELD_BITS,
    KINDS,
    MAGIC_AT,
    V2_FIELDS,
    Case,
    Mutation,
    fields_of,
    fit_crc,
    get,
    kind,
    kind_of,
    with_field,
)


def _bytes(change: Callable[[random.Random, bytes], bytes]) -> Mutation:
    def mutate(case: Case) -> None:
        segment = case.some()
        segment.batches = [change(case.rng, segment.log)] if segment.log else []

    mutate.__name__ = change.__name__
    return kind(mutate)


def _flipped(rng: random.Random, log: bytes, position: int) -> bytes:
    return log[:position] + bytes([log[position] ^ 1 << rng.randrange(8)]) + log[position + 1 :]


def _range(rng: random.Random, log: bytes) -> tuple[int, int]:
    first = rng.randrange(len(log))
    return first, min(len(log), first + rng.choice([1, 4, 61, rng.randint(1, len(log))]))


@_bytes
def flipped_bit(rng: random.Random, log: bytes) -> bytes:
    return _flipped(rng, log, rng.randrange(len(log)))


@_bytes
def flipped_bits(rng: random.Random, log: bytes) -> bytes:
    for _ in range(rng.randint(2, 20)):
        log = _flipped(rng, log, rng.randrange(len(log)))
    return log


@_bytes
def cut(rng: random.Random, log: bytes) -> bytes:
    return log[: rng.randrange(len(log))]


@_bytes
def zeros_at_end(rng: random.Random, log: bytes) -> bytes:
    return log + bytes(rng.choice([1, 11, 12, 16, 17, 18, 60, 61, 500]))


@_bytes
def garbage_at_end(rng: random.Random, log: bytes) -> bytes:
    return log + rng.randbytes(rng.choice([1, 12, 17, 18, 61, 300]))


@_bytes
def zeroed_range(rng: random.Random, log: bytes) -> bytes:
    first, end = _range(rng, log)
    return log[:first] + bytes(end - first) + log[end:]


@_bytes
def removed_range(rng: random.Random, log: bytes) -> bytes:
    first, end = _range(rng, log)
    return log[:first] + log[end:]


@_bytes
def repeated_range(rng: random.Random, log: bytes) -> bytes:
    first, end = _range(rng, log)
    return log[:end] + log[first:]


@_bytes
def inserted_garbage(rng: random.Random, log: bytes) -> bytes:
    first = rng.randrange(len(log))
    return log[:first] + rng.randbytes(rng.choice([1, 4, 61, 200])) + log[first:]


# One batch.


def _batch(change: Callable[[Case, bytes], bytes]) -> Mutation:
    def mutate(case: Case) -> None:
        segment = case.some()
        if segment.batches:
            place = case.place(segment)
            segment.batches[place] = change(case, segment.batches[place])

    mutate.__name__ = change.__name__
    return kind(mutate)


@_batch
def flipped_in_header(case: Case, batch: bytes) -> bytes:
    return _flipped(case.rng, batch, case.rng.randrange(min(61, len(batch))))


@_batch
def cut_header(case: Case, batch: bytes) -> bytes:
    return batch[: case.rng.randrange(min(61, len(batch)))]


@_batch
def size_alone(case: Case, batch: bytes) -> bytes:
    size = case.number_near(32, get(batch, "size"))
    odd = case.rng.choice([0, 1, 13, 14, 21, 22, 48, 49, 50, size, size])
    return batch[:8] + struct.pack(">i", odd) + batch[12:]


@_batch
def shorter_or_longer(case: Case, batch: bytes) -> bytes:
    """Take bytes from the end or add some, with a size and a checksum that fit."""
    if case.rng.random() < 0.5:
        changed = batch[: case.rng.randint(21, len(batch))]
    else:
        changed = batch + case.rng.randbytes(case.rng.choice([1, 5, 40]))
    return fit_crc(changed[:8] + struct.pack(">i", len(changed) - 12) + changed[12:])


@_batch
def payload_noise(case: Case, batch: bytes) -> bytes:
    head = 61 if len(batch) > 61 and batch[MAGIC_AT] >= 2 else 18
    if len(batch) <= head:
        return batch
    for _ in range(case.rng.choice([1, 1, 3, 30])):
        batch = _flipped(case.rng, batch, case.rng.randrange(head, len(batch)))
    return fit_crc(batch)


@_batch
def several_fields(case: Case, batch: bytes) -> bytes:
    for _ in range(case.rng.randint(2, 4)):
        name = case.rng.choice([*fields_of(batch)])
        if name != "size":
            batch = _odd(case, batch, name)
    return batch


def _odd(case: Case, batch: bytes, name: str) -> bytes:
    if name not in fields_of(batch):
        return batch
    bits = FIELD_BITS[fields_of(batch)[name][1]]
    return with_field(batch, name, case.number_near(bits, get(batch, name)))


def _field(name: str) -> None:
    @_batch
    def change(case: Case, batch: bytes) -> bytes:
        return _odd(case, batch, name)

    KINDS[f"{name}_set"] = KINDS.pop(change.__name__)


for _name in V2_FIELDS:
    if _name != "size":
        _field(_name)


@kind_of("legacy")
def legacy_field_set(case: Case) -> None:
    segment = case.some()
    if segment.batches:
        place = case.place(segment)
        name = case.rng.choice(["base_offset", "attributes", "timestamp", "magic"])
        segment.batches[place] = _odd(case, segment.batches[place], name)
