"""Batches that say something else of the same records: found, and named, and nothing else is."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from kafka_segments.verbs.copies.divergence.decide.copies import DifferenceKind
from support.logs.log_copies import (
    CLOCK_MS,
    Batch,
    LogCopy,
    compacted,
    compared,
    drawn_fields,
    epochs_of,
    recompressed,
    rolled,
)
from support.logs.strategies import GZIP

HOUR_MS = 3_600_000
pytestmark = pytest.mark.drawn

CHANGES: dict[str, tuple[str, Callable[[Batch], Batch]]] = {
    "timestamp": ("idempotent", lambda one: replace(one, clock_ms=one.clock_ms + 5)),
    "timestamp of one record": (
        "idempotent",
        lambda one: replace(one, stamps=((one.last, CLOCK_MS - 9),), max_ms=one.clock_ms),
    ),
    "greatest timestamp": ("idempotent", lambda one: replace(one, max_ms=one.clock_ms + 5)),
    "timestamp, LogAppendTime": ("append", lambda one: replace(one, append_ms=CLOCK_MS + 5)),
    "timestamp type": ("idempotent", lambda one: replace(one, append_ms=one.clock_ms)),
    "producer id": ("idempotent", lambda one: replace(one, producer_id=99)),
    "producer epoch": ("idempotent", lambda one: replace(one, producer_epoch=9)),
    "sequence": ("idempotent", lambda one: replace(one, sequence=one.sequence + 1)),
    "transactional flag": ("idempotent", lambda one: replace(one, is_transactional=True)),
    "control flag": ("idempotent", lambda one: replace(one, is_control=True)),
    "control flag, a marker": ("markers", lambda one: replace(one, is_control=False)),
    "producer id, a marker": ("markers", lambda one: replace(one, producer_id=99)),
    "timestamp, a marker": ("markers", lambda one: replace(one, clock_ms=one.clock_ms + 5)),
    "attributes": ("idempotent", lambda one: replace(one, flags=0x80)),
    "producer id, emptied": ("emptied", lambda one: replace(one, producer_id=99)),
    "sequence, emptied": ("emptied", lambda one: replace(one, sequence=one.sequence + 1)),
}


def _copies(
    rng: random.Random, log: list[Batch], wrong: list[Batch], count: int
) -> dict[str, LogCopy]:
    logs = {"a": log, "b": wrong} | ({"c": log} if count > 2 else {})
    return {name: rolled(rng, batches) for name, batches in logs.items()}


@pytest.mark.parametrize("is_packed", [False, True], ids=["same codec", "another codec"])
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("what", CHANGES)
def test_what_differs_in_one_field_alone_is_found(
    seed: int, what: str, count: int, *, is_packed: bool
) -> None:
    rng = random.Random(f"{seed} {what} {count} {is_packed}")
    style, change = CHANGES[what]
    log = drawn_fields(rng, style)
    at = rng.choice([n for n, one in enumerate(log) if n and _is_of(style, one)])
    changed = change(log[at])
    if is_packed:
        changed = replace(changed, codec=0 if changed.codec else GZIP)
    rows = compared(_copies(rng, log, [*log[:at], changed, *log[at + 1 :]], count))

    found = [row for row in rows if row.is_finding]
    wrong, right = (("b",), ("a", "c")) if count > 2 else (("a", "b"), ())
    assert [(row.kind, row.from_offset, row.until_offset) for row in found] == [
        (DifferenceKind.FIELDS, log[at].base, log[at].last + 1)
    ]
    assert (found[0].copies, found[0].right) == (wrong, right)
    assert what.partition(",")[0].replace("greatest ", "").replace(" of one record", "") in (
        found[0].detail
    )


def _is_of(style: str, batch: Batch) -> bool:
    if style == "markers":
        return batch.is_commit is not None
    if style == "emptied":
        return not batch.records
    return len(batch.records) > 1


def _with_horizons(log: list[Batch]) -> list[Batch]:
    return [replace(one, horizon_ms=CLOCK_MS + HOUR_MS) for one in log]


def _as_messages(log: list[Batch]) -> list[Batch]:
    """Batches of single records as messages v1, which know no producer."""
    return [
        replace(one, magic=1, codec=0) if len(one.records) == 1 and one.is_commit is None else one
        for one in log
    ]


@pytest.mark.parametrize("style", ["idempotent", "append", "markers", "emptied"])
@pytest.mark.parametrize("write", [recompressed, _with_horizons])
def test_what_writes_the_same_records_anew_is_no_finding(
    seed: int, style: str, write: Callable[[list[Batch]], list[Batch]]
) -> None:
    rng = random.Random(f"{seed} {style} {write.__name__}")
    log = drawn_fields(rng, style)
    rows = compared(_copies(rng, log, write(log), 3))

    assert {row.kind for row in rows} <= {DifferenceKind.EQUAL, DifferenceKind.RECOMPRESSED}


def test_a_format_that_has_no_producers_contradicts_none(seed: int) -> None:
    rng = random.Random(f"{seed} converted")
    log = [replace(one, epoch=-1) for one in drawn_fields(rng, "idempotent")]
    rows = compared(_copies(rng, log, _as_messages(log), 3))

    assert {row.kind for row in rows} == {DifferenceKind.EQUAL, DifferenceKind.RECOMPRESSED}
    later = [replace(one, clock_ms=one.clock_ms + 5) for one in _as_messages(log)]
    found = [row for row in compared(_copies(rng, log, later, 3)) if row.is_finding]
    assert {(row.kind, row.copies) for row in found} == {(DifferenceKind.FIELDS, ("b",))}


def test_the_cleaner_changes_the_greatest_timestamp_of_what_it_thins_and_no_other_field(
    seed: int,
) -> None:
    rng = random.Random(f"{seed} thinned")
    for _ in range(5):
        log = [
            replace(
                one, stamps=tuple((at, CLOCK_MS - n) for n, (at, _, _) in enumerate(one.records))
            )
            for one in drawn_fields(rng, "idempotent")
        ]
        copies = {}
        for name in "abc":
            up_to = log[rng.randint(20, 44)].base
            copies[name] = rolled(rng, compacted(log, up_to), base=log[0].base)
            copies[name].cleaner_offset, copies[name].epochs = up_to, epochs_of(log)
        rows = compared(copies)

        assert [row for row in rows if row.is_finding] == []


def _with_stamps(batch: Batch) -> Batch:
    stamps = ((at, CLOCK_MS - number) for number, (at, _, _) in enumerate(batch.records))
    return replace(batch, stamps=tuple(stamps))


def test_of_copies_that_all_differ_none_is_right_and_two_that_agree_are(seed: int) -> None:
    rng = random.Random(f"{seed} votes")
    log = drawn_fields(rng, "idempotent")
    at = next(n for n, one in enumerate(log) if n and len(one.records) > 1)
    others = [
        [*log[:at], replace(log[at], sequence=log[at].sequence + by), *log[at + 1 :]]
        for by in (1, 2)
    ]
    copies = {"a": rolled(rng, log), "b": rolled(rng, others[0]), "c": rolled(rng, others[1])}
    [row] = [row for row in compared(copies) if row.is_finding]
    assert (row.copies, row.right) == (("a", "b", "c"), ())
    copies["d"] = rolled(rng, recompressed(log))
    copies["e"] = rolled(rng, log)
    [row] = [row for row in compared(copies) if row.is_finding]
    assert (row.copies, row.right) == (("b", "c"), ("a", "d", "e"))


def test_rows_beside_each_other_say_each_what_differs(seed: int) -> None:
    rng = random.Random(f"{seed} beside")
    log = drawn_fields(rng, "idempotent")
    wrong = [
        *log[:20],
        replace(log[20], producer_id=99),
        replace(log[21], sequence=7_777),
        *log[22:],
    ]
    found = [row for row in compared(_copies(rng, log, wrong, 3)) if row.is_finding]

    assert [(row.from_offset, row.until_offset) for row in found] == [
        (log[20].base, log[20].last + 1),
        (log[21].base, log[21].last + 1),
    ]
    assert "producer id" in found[0].detail
    assert "sequence" in found[1].detail
