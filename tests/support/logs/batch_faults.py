"""Faults of single batches of a copy: rot, other contents or fields, and holes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from support.logs.faulty_copies import (
    CONFLICT,
    FIELDS,
    LOST,
    MISPLACED,
    ROT,
    Drawn,
    Fault,
    Happened,
)
from support.logs.log_copies import CLOCK_MS, Batch, flipped
from support.logs.strategies import GZIP, crc32c

BATCH_FAULTS: dict[str, Fault] = {}


def is_data(batch: Batch) -> bool:
    return len(batch.records) > 1


def _is_marker(batch: Batch) -> bool:
    return batch.is_commit is not None


# A field of the header, or a byte of the records, rots: the checksum tells.

_HEADER = {
    "base offset": (0, 8),
    "batch length": (8, 4),
    "leader epoch": (12, 4),
    "magic": (16, 1),
    "checksum": (17, 4),
    "attributes": (21, 2),
    "last offset delta": (23, 4),
    "base timestamp": (27, 8),
    "greatest timestamp": (35, 8),
    "producer id": (43, 8),
    "producer epoch": (51, 2),
    "base sequence": (53, 4),
    "record count": (57, 4),
}


def _flip(first: int, width: int) -> Fault:
    def fault(drawn: Drawn, name: str) -> Happened | None:
        at = drawn.batch()
        if at is None:
            return None
        place, bit = first + drawn.rng.randrange(width), drawn.rng.randrange(8)
        drawn.spoils[name, drawn.log[at].base] = lambda data: flipped(data, place, bit)
        found = drawn.of_batch((ROT, MISPLACED) if first == 0 else (ROT,), name, at)
        if first:
            return found
        # the batch can come to lie beside its place, as far as its neighbours let it
        return found._replace(low=drawn.log[at - 1].base, high=drawn.log[at + 1].last + 1)

    return fault


def _flip_behind(share: float) -> Fault:
    def fault(drawn: Drawn, name: str) -> Happened | None:
        at = drawn.batch()
        if at is None:
            return None
        bit = drawn.rng.randrange(8)

        def spoil(data: bytes) -> bytes:
            return flipped(data, 61 + int(share * (len(data) - 62)), bit)

        drawn.spoils[name, drawn.log[at].base] = spoil
        return drawn.of_batch((ROT,), name, at)

    return fault


def _bytes(change: Callable[[random.Random, bytes], bytes], *, is_empty: bool = False) -> Fault:
    """Change the bytes of a batch; ``is_empty``: something stands behind it."""

    def fault(drawn: Drawn, name: str) -> Happened | None:
        at = drawn.batch()
        if at is None:
            return None
        seed = drawn.rng.random()
        drawn.spoils[name, drawn.log[at].base] = lambda data: change(random.Random(seed), data)
        found = drawn.of_batch((ROT, MISPLACED), name, at)
        if not is_empty:
            return found
        return found._replace(base=found.until, low=found.until)

    return fault


def _cut(rng: random.Random, data: bytes) -> bytes:
    """Cut off more than zeros: the next batch begins with such, and would be the one that lacks."""
    zeros = len(data) - len(data.rstrip(b"\0"))
    return data[: -rng.randint(zeros + 1, len(data) - 1)]


BATCH_FAULTS |= {f"flipped {what}": _flip(*where) for what, where in _HEADER.items()}
BATCH_FAULTS |= {
    "flipped first record": _flip_behind(0),
    "flipped middle record": _flip_behind(0.5),
    "flipped last byte": _flip_behind(1),
    "zeroed batch": _bytes(lambda _, data: bytes(len(data))),
    "zeroed header": _bytes(lambda _, data: bytes(61) + data[61:]),
    "zeroed records": _bytes(lambda _, data: data[:61] + bytes(len(data) - 61)),
    "random bytes": _bytes(lambda rng, data: rng.randbytes(len(data))),
    "cut batch": _bytes(_cut),
    "batch without its front": _bytes(lambda rng, data: data[rng.randint(1, len(data) - 1) :]),
    "bytes inserted": _bytes(lambda rng, data: data[:40] + rng.randbytes(3) + data[40:]),
    "batch written twice": _bytes(lambda _, data: data + data, is_empty=True),
    "garbage behind": _bytes(lambda rng, data: data + rng.randbytes(37), is_empty=True),
    "zeros behind": _bytes(lambda _, data: data + bytes(100), is_empty=True),
}


# A batch says something else, and its checksum is right.


def _other(
    kinds: tuple[str, ...],
    change: Callable[[Batch], Batch],
    want: Callable[[Batch], bool] = is_data,
    *,
    is_packed: bool = False,
) -> Fault:
    def fault(drawn: Drawn, name: str) -> Happened | None:
        at = drawn.batch(want)
        if at is None:
            return None
        new = change(drawn.log[at])
        drawn.put(name, at, replace(new, codec=0 if new.codec else GZIP) if is_packed else new)
        return drawn.by_votes(kinds, name, at)

    return fault


def _has_producer(batch: Batch) -> bool:
    return batch.producer_id is not None and is_data(batch)


def _is_created(batch: Batch) -> bool:
    return batch.append_ms is None and is_data(batch)


def _later(batch: Batch) -> Batch:
    return replace(batch, clock_ms=batch.clock_ms + 7)


_OTHER_FIELDS: dict[str, tuple[Callable[[Batch], Batch], Callable[[Batch], bool]]] = {
    "timestamps": (_later, _is_created),
    "timestamp of one record": (
        lambda one: replace(one, stamps=((one.last, CLOCK_MS - 9),), max_ms=one.clock_ms),
        _is_created,
    ),
    "greatest timestamp": (lambda one: replace(one, max_ms=one.clock_ms + 7), _is_created),
    "append time": (
        lambda one: replace(one, append_ms=(one.append_ms or 0) + 7),
        lambda one: one.append_ms is not None and is_data(one),
    ),
    "timestamp type": (lambda one: replace(one, append_ms=one.clock_ms), _is_created),
    "producer id": (lambda one: replace(one, producer_id=99), _has_producer),
    "producer epoch": (lambda one: replace(one, producer_epoch=9), _has_producer),
    "sequence": (lambda one: replace(one, sequence=one.sequence + 1), _has_producer),
    "no producer": (lambda one: replace(one, producer_id=None, sequence=-1), _has_producer),
    "transactional flag": (
        lambda one: replace(one, is_transactional=not one.is_transactional),
        _has_producer,
    ),
    "control flag": (lambda one: replace(one, is_control=True), is_data),
    "unused flag": (lambda one: replace(one, flags=0x80), is_data),
    "marker's producer id": (lambda one: replace(one, producer_id=99), _is_marker),
    "marker's producer epoch": (lambda one: replace(one, producer_epoch=9), _is_marker),
    "marker's time": (_later, _is_marker),
    "marker's control flag": (lambda one: replace(one, is_control=False), _is_marker),
}
for _what, (_change, _want) in _OTHER_FIELDS.items():
    BATCH_FAULTS[f"other {_what}"] = _other((FIELDS,), _change, _want)
    BATCH_FAULTS[f"other {_what}, repacked"] = _other((FIELDS,), _change, _want, is_packed=True)


def _with_first(batch: Batch, key: bytes | None, value: bytes | None) -> Batch:
    (offset, _, _), *rest = batch.records
    return replace(batch, records=((offset, key, value), *rest))


BATCH_FAULTS |= {
    "other value": _other((CONFLICT,), lambda one: _with_first(one, one.records[0][1], b"other")),
    "other key": _other((CONFLICT,), lambda one: _with_first(one, b"other", one.records[0][2])),
    "no key": _other((CONFLICT,), lambda one: _with_first(one, None, one.records[0][2])),
    "tombstone": _other((CONFLICT,), lambda one: _with_first(one, one.records[0][1], None)),
    "other end of the transaction": _other(
        (CONFLICT,), lambda one: replace(one, is_commit=not one.is_commit), _is_marker
    ),
}


def _with_records(batch: bytes, change: Callable[[bytearray], None]) -> bytes:
    """Change what the checksum covers, and write it anew."""
    data = bytearray(batch)
    change(data)
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def _undecodable(change: Callable[[bytearray], None]) -> Fault:
    def fault(drawn: Drawn, name: str) -> Happened | None:
        at = drawn.batch(is_data)
        if at is None:
            return None
        drawn.spoils[name, drawn.log[at].base] = lambda data: _with_records(data, change)
        return drawn.by_votes((CONFLICT,), name, at)

    return fault


def _more_records(data: bytearray) -> None:
    data[57:61] = (int.from_bytes(data[57:61], "big") + 1).to_bytes(4, "big")


def _no_codec(data: bytearray) -> None:
    data[22] |= 0x07


BATCH_FAULTS |= {
    "count of records too great": _undecodable(_more_records),
    "unknown codec": _undecodable(_no_codec),
}


# Something is missing.


def _hole(want: Callable[[Batch], bool] = is_data, *, more: int = 0) -> Fault:
    def fault(drawn: Drawn, name: str) -> Happened | None:
        at = drawn.batch(want, more=more)
        if at is None:
            return None
        for number in range(at, at + more + 1):
            drawn.put(name, number, None)
        return drawn.of_batch((LOST,), name, at, more=more)

    return fault


def _thinner(choose: Callable[[tuple], tuple]) -> Fault:
    """Take a record out of a batch, which keeps its offsets."""

    def fault(drawn: Drawn, name: str) -> Happened | None:
        at = drawn.batch(lambda one: 2 < len(one.records) < 20)
        if at is None:
            return None
        batch = drawn.log[at]
        gone = choose(batch.records)
        drawn.put(name, at, replace(batch, records=tuple(r for r in batch.records if r != gone)))
        return drawn.of_batch((LOST,), name, at)._replace(base=gone[0], until=gone[0] + 1)

    return fault


BATCH_FAULTS |= {
    "lost batch": _hole(),
    "lost batches": _hole(more=2),
    "lost record, the first": _thinner(lambda records: records[0]),
    "lost record, in the middle": _thinner(lambda records: records[len(records) // 2]),
    "lost record, the last": _thinner(lambda records: records[-1]),
    "lost commit": _hole(lambda one: one.is_commit is True),
    "lost abort": _hole(lambda one: one.is_commit is False),
    "lost batch of a transaction": _hole(lambda one: _has_producer(one) and one.is_transactional),
    "lost batch of an idempotent producer": _hole(
        lambda one: _has_producer(one) and not one.is_transactional
    ),
}
