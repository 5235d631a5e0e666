"""What is missing below the cleaner's offset: told from compaction by the keys of records."""

import random
from collections.abc import Iterator, Sequence

import pytest

from kafka_segments.verbs.copies.divergence.decide.copies import DifferenceKind, Divergence
from kafka_segments.verbs.copies.divergence.decide.keyed import Keyed
from kafka_segments.verbs.copies.divergence.decide.lost_keys import Lost, Missing, lost_records
from support.logs.log_copies import Batch, LogCopy, compared, flipped, forked, recompressed, rolled
from support.model.plain_compaction import Replica, Topic, lived

ROUNDS = 25
NAMES = ["ab", pytest.param("abc", marks=pytest.mark.long)]
drawn = pytest.mark.drawn


# The rule, of records that are written down.


def value(offset: int, key: int, producer: int | None = None) -> Keyed:
    return Keyed(offset, key, True, producer)


def tombstone(offset: int, key: int, producer: int | None = None) -> Keyed:
    return Keyed(offset, key, False, producer)


def marker(offset: int, producer: int, *, is_commit: bool) -> Keyed:
    return Keyed(offset, producer_id=producer, is_commit=is_commit)


def other(offset: int) -> Keyed:
    return Keyed(offset)


def lost(
    own: Sequence[Keyed], missing: Sequence[Keyed], *, seen: int = 100, end: int = 0
) -> list[int]:
    held = [Missing(one, ("a",), seen) for one in missing]
    return [one.offset for one in lost_records(own, held, end)]


@pytest.mark.parametrize(
    ("own", "missing", "expected"),
    [
        ([], [value(3, 1)], [3]),
        ([other(2), other(4)], [value(3, 1)], [3]),
        # A later record of the key, here or in what is missing.
        ([value(4, 1)], [value(3, 1)], []),
        ([tombstone(4, 1)], [value(3, 1)], []),
        ([value(2, 1)], [value(3, 1)], [3]),
        ([value(4, 2)], [value(3, 1)], [3]),
        ([], [value(3, 1), value(4, 1)], [4]),
        ([], [value(3, 1), value(4, 2)], [3, 4]),
        # What is held is not missing.
        ([value(3, 1)], [value(3, 1)], []),
        # A tombstone that is gone, and what came behind it.
        ([], [tombstone(3, 1)], []),
        ([], [value(3, 1), tombstone(4, 1)], []),
        ([], [value(3, 1), tombstone(4, 2)], [3]),
        ([], [tombstone(3, 1), value(4, 1)], [4]),
        # No key.
        ([], [value(3, 0)], []),
        # Transactions: of what is missing.
        ([marker(5, 7, is_commit=True)], [value(3, 1, 7)], [3]),
        ([marker(5, 7, is_commit=False)], [value(3, 1, 7)], []),
        ([marker(5, 8, is_commit=True)], [value(3, 1, 7)], []),
        ([], [value(3, 1, 7), marker(4, 7, is_commit=True)], [3]),
        ([], [value(3, 1, 7)], []),
        ([], [value(3, 1, 7), marker(4, 7, is_commit=False), marker(5, 7, is_commit=True)], []),
        # Of what comes later.
        ([value(4, 1, 7), marker(5, 7, is_commit=True)], [value(3, 1)], []),
        ([value(4, 1, 7), marker(5, 7, is_commit=False)], [value(3, 1)], [3]),
        ([value(4, 1, 7)], [value(3, 1)], [3]),
        # A transaction is committed behind a later record of the key.
        ([value(4, 1), marker(5, 7, is_commit=True)], [value(3, 1, 7)], []),
        ([marker(5, 7, is_commit=True)], [value(3, 1, 7), value(4, 1)], [4]),
        ([marker(5, 7, is_commit=True)], [tombstone(3, 1, 7), value(4, 1)], [4]),
        (
            [marker(5, 8, is_commit=True), marker(6, 7, is_commit=True)],
            [value(3, 1, 7), value(4, 1, 8)],
            [4],
        ),
        (
            [marker(5, 8, is_commit=False), marker(6, 7, is_commit=True)],
            [value(3, 1, 7), value(4, 1, 8)],
            [3],
        ),
        # What cannot be decoded may hold any key.
        ([Keyed(4, None)], [value(3, 1)], []),
        ([Keyed(2, None)], [value(3, 1)], [3]),
        ([Keyed(4, None), marker(5, 7, is_commit=True)], [value(3, 1, 7)], []),
        ([other(4)], [value(3, 1), Keyed(5, None)], []),
    ],
)
def test_a_record_is_lost_if_nothing_behind_it_explains_that(
    own: list[Keyed], missing: list[Keyed], expected: list[int]
) -> None:
    assert lost(own, missing) == expected


@pytest.mark.parametrize(
    ("own", "seen", "end", "expected"),
    [
        ([other(4), other(5), other(6)], 5, 7, [3]),  # no place for a tombstone
        ([other(4), other(6)], 5, 7, []),  # at 5, which the holder's log does not show
        ([other(4), other(6)], 6, 7, [3]),  # the holder had 5, and would have lost 3
        ([other(4)], 5, 6, []),  # at the end
        ([other(4)], 6, 6, [3]),
        ([other(4)], 5, 5, [3]),
    ],
)
def test_a_tombstone_may_have_been_where_no_copy_shows_what_was_there(
    own: list[Keyed], seen: int, end: int, expected: list[int]
) -> None:
    assert lost(own, [value(3, 1)], seen=seen, end=end) == expected


def test_what_is_found_is_certain_where_offsets_have_no_gap_behind_it() -> None:
    own = [other(2), other(5), other(6), other(9), other(11)]
    missing = [value(offset, offset) for offset in (3, 4, 7, 8, 10)]
    held = [Missing(one, ("a",), 100) for one in missing]

    assert lost_records(own, held, 12) == [
        Lost(3, 2, ("a",), True),
        Lost(4, 2, ("a",), True),
        Lost(7, 6, ("a",), True),
        Lost(8, 6, ("a",), True),
        Lost(10, 9, ("a",), True),
    ]
    assert [one.is_certain for one in lost_records(own, held[:4], 12)] == [False] * 4
    assert [one.is_certain for one in lost_records(own[:4], held[:4], 11)] == [False] * 4
    assert [one.is_certain for one in lost_records(own[1:], held[:4], 12)] == [False] * 4
    assert [one.is_certain for one in lost_records(own[:1], held, 11)] == [False] * 4 + [True]


def test_what_is_told_otherwise_explains_others_and_is_no_loss() -> None:
    damaged = Missing(value(4, 1), ("a",), 100, is_cleaned=False)

    assert lost_records([], [Missing(value(3, 1), ("a",), 100), damaged], 5) == []


def test_no_more_is_read_once_all_is_explained() -> None:
    def own() -> Iterator[Keyed]:
        yield value(4, 1)
        raise AssertionError

    assert lost_records(own(), [Missing(value(3, 1), ("a",), 100)], 9) == []


# Copies that cleaned for themselves.


def findings(rows: list[Divergence]) -> list[Divergence]:
    return [row for row in rows if row.is_finding]


@drawn
@pytest.mark.parametrize("names", NAMES)
def test_copies_that_cleaned_for_themselves_have_lost_nothing(seed: int, names: str) -> None:
    rng = random.Random(f"{seed} {names}")
    kinds = set()
    for _ in range(ROUNDS):
        _, replicas = lived(rng, names, away=rng.choice(["", "a", "b"]))
        copies = {name: replica.copy() for name, replica in replicas.items()}
        if rng.random() < 0.3:
            copies = {name: _without_checkpoint(copy) for name, copy in copies.items()}
        rows = compared(copies, by_keys=True)
        kinds |= {row.kind for row in rows}

        assert findings(rows) == []

    assert DifferenceKind.COMPACTION in kinds


def _without_checkpoint(copy: LogCopy) -> LogCopy:
    copy.cleaner_offset = None
    return copy


@pytest.mark.slow
@drawn
@pytest.mark.parametrize("names", NAMES)
def test_a_lost_segment_is_found_where_the_last_record_of_a_key_was(seed: int, names: str) -> None:
    rng = random.Random(f"{seed} {names} lost")
    counts = {True: 0, False: 0}
    for _ in range(4 * ROUNDS):
        topic, replicas = lived(rng, names)
        cleaned = max(replica.cleaned for replica in replicas.values())
        gone = _drop(rng, replicas["b"], cleaned)
        if gone is None:
            continue
        copies = {name: replica.copy() for name, replica in replicas.items()}
        found = findings(compared(copies, by_keys=True))

        others = {batch for name in names if name != "b" for batch in replicas[name].batches}
        markers = [one for one in gone if one.is_commit is not None and one in others]
        expected = _last_values(topic, gone, replicas["b"]) | _needed(markers, replicas["b"])
        assert {(row.kind, row.copies) for row in found} <= {(DifferenceKind.LOST, ("b",))}
        covered = {
            at for at in expected if any(row.from_offset <= at < row.until_offset for row in found)
        }
        edges = {edge for row in found for edge in (row.from_offset, row.until_offset - 1)}
        assert covered == expected >= edges
        assert {name for row in found for name in row.right} <= set(names) - {"b"}
        counts[bool(expected)] += 1

    assert min(counts.values()) > 3


def _drop(rng: random.Random, replica: Replica, cleaned: int) -> list[Batch] | None:
    """Lose a segment that lies below an offset, neither the first nor the last one."""
    segments = replica.segments
    there = [
        at
        for at in range(1, len(segments) - 1)
        if segments[at + 1][0] <= cleaned and segments[at][1]
    ]
    return segments.pop(rng.choice(there))[1] if there else None


def _last_values(topic: Topic, gone: list[Batch], replica: Replica) -> set[int]:
    """Give the offsets of records that are gone and were the last ones of their keys."""
    last: dict[bytes, tuple[int, bytes | None]] = {}
    for batch in sorted([*gone, *replica.batches], key=lambda one: one.base):
        for offset, key, value in batch.records:
            if key is not None and offset not in topic.aborted:
                last[key] = offset, value
    offsets = {offset for batch in gone for offset, _, _ in batch.records}
    return {at for at, value in last.values() if value is not None} & offsets


def _needed(markers: list[Batch], replica: Replica) -> set[int]:
    """Give the markers that are gone while batches of a transaction are there without one."""
    needed = set()
    for marker in markers:
        own = [
            one
            for one in (*replica.batches, *markers)
            if one.producer_id == marker.producer_id and one.base < marker.base
        ]
        if own and max(own, key=lambda one: one.base).is_commit is None:
            needed.add(marker.base)
    return needed


def test_without_keys_such_a_segment_looks_compacted() -> None:
    log = [Batch(at, at, 0, ((at, b"k%d" % at, b"v"),)) for at in range(8)]
    whole, part = rolled(random.Random(0), log), rolled(random.Random(0), [*log[:3], *log[4:]])
    whole.cleaner_offset = 6
    copies = {"a": whole, "b": part}

    assert findings(compared(copies)) == []
    assert [
        (row.kind, row.from_offset, row.until_offset, row.copies, row.right)
        for row in findings(compared(copies, by_keys=True))
    ] == [(DifferenceKind.LOST, 3, 4, ("b",), ("a",))]


def test_records_that_a_batch_lost_are_found_by_their_keys() -> None:
    whole = [Batch(0, 2, 0, tuple((at, b"k%d" % at, b"v") for at in range(3)))]
    behind = [Batch(3, 3, 0, ((3, b"k1", b"v"),))]
    thin = [Batch(0, 2, 0, whole[0].records[:1])]
    copies = {
        "a": LogCopy([(0, [one.written() for one in [*whole, *behind]])], cleaner_offset=3),
        "b": LogCopy([(0, [one.written() for one in [*thin, *behind]])]),
    }

    assert [
        (row.kind, row.from_offset, row.until_offset, row.copies)
        for row in findings(compared(copies, by_keys=True))
    ] == [(DifferenceKind.LOST, 2, 3, ("b",))]


def test_what_is_damaged_in_front_does_not_hide_the_records_behind() -> None:
    log = [Batch(at, at, 0, ((at, b"k%d" % (at % 4), b"v"),)) for at in range(12)]
    rng = random.Random(0)
    copies = {"a": rolled(rng, log), "b": rolled(rng, [*log[:2], *log[3:]])}
    copies["a"].cleaner_offset = 9
    written = copies["b"].segments
    first = written[0][1]
    copies["b"].segments = [(0, [batch for _, held in written for batch in held])]
    data = copies["b"].file(0)
    copies["b"].spoil(0, flipped(data, len(first[0]) + 70))

    found = findings(compared(copies, by_keys=True))
    assert [(row.kind, row.from_offset) for row in found] == [(DifferenceKind.ROT, 1)]


def test_a_side_of_a_fork_explains_nothing_of_the_other() -> None:
    rng = random.Random(0)
    log = [Batch(at, at, 0, ((at, b"k%d" % at, b"v"),)) for at in range(12)]
    newer = forked(rng, log, 8)
    behind = newer[-1].last + 1
    again = [*newer, Batch(behind, behind, newer[-1].epoch, ((behind, b"k3", b"v"),))]
    copies = {"a": rolled(rng, again), "b": rolled(rng, [*log[:3], *log[4:]])}
    copies["a"].cleaner_offset = 8

    found = findings(compared(copies, by_keys=True))
    assert [(row.kind, row.from_offset, row.copies) for row in found] == [
        (DifferenceKind.LOST, 3, ("b",)),
        (DifferenceKind.FORK, 8, ("b",)),
    ]


def test_other_bytes_of_the_same_records_are_no_loss(seed: int) -> None:
    rng = random.Random(seed)
    log = [Batch(at, at, 0, ((at, b"k%d" % at, b"v"),)) for at in range(12)]
    copies = {"a": rolled(rng, log), "b": rolled(rng, recompressed(log))}
    copies["a"].cleaner_offset = 9

    assert {row.kind for row in compared(copies, by_keys=True)} == {DifferenceKind.RECOMPRESSED}
