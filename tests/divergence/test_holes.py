"""What a copy lacks inside a segment is lost, unless something elsewhere tells of compaction."""

import random
from collections.abc import Callable, Iterator

import pytest

from kafka_segments.verbs.copies.divergence.decide.compaction import Compaction
from kafka_segments.verbs.copies.divergence.decide.copies import (
    UNBOUNDED,
    Copy,
    DifferenceKind,
    Divergence,
)
from kafka_segments.verbs.copies.divergence.decide.keyed import Keyed
from support.logs.log_copies import (
    HOLES,
    Batch,
    Hole,
    LogCopy,
    compacted,
    compared,
    drawn_log,
    drawn_transactions,
    inserted,
    rolled,
    with_hole,
)
from support.model.plain_compaction import lived

ROUNDS = 6
OTHERS = {2: ("a",), 3: ("a", "c")}
drawn = pytest.mark.drawn


def findings(rows: list[Divergence]) -> list[tuple]:
    """Give the rows that someone must look at."""
    return [
        (row.kind, row.from_offset, row.until_offset, row.copies, row.right)
        for row in rows
        if row.is_finding
    ]


def beside(rng: random.Random, log: list[Batch], wrong: LogCopy, count: int) -> dict[str, LogCopy]:
    """Give copies, of which "b" is the wrong one."""
    copies = {name: rolled(rng, log) for name in OTHERS[count]}
    return dict(sorted({**copies, "b": wrong}.items()))


def noted(copies: dict[str, LogCopy]) -> dict[str, LogCopy]:
    """Let cleaner-offset-checkpoint be at hand; it names only logs with a cleaner offset."""
    for copy in copies.values():
        copy.has_cleaner_checkpoint = True
    return copies


def bare(copies: dict[str, LogCopy]) -> dict[str, LogCopy]:
    return copies


def keyed(rng: random.Random) -> list[Batch]:
    return drawn_log(rng)


def with_own_keys(rng: random.Random) -> list[Batch]:
    return [
        Batch(
            one.base,
            one.last,
            one.epoch,
            tuple((at, b"k%d" % at, b"v") for at, _, _ in one.records),
        )
        for one in drawn_log(rng)
    ]


@drawn
@pytest.mark.parametrize("by_keys", [False, True])
@pytest.mark.parametrize("count", OTHERS)
@pytest.mark.parametrize("at_hand", [noted, bare])
@pytest.mark.parametrize("what", HOLES)
def test_a_single_hole_is_no_evidence_of_compaction(
    seed: int, what: str, at_hand: Callable[..., dict[str, LogCopy]], count: int, *, by_keys: bool
) -> None:
    rng = random.Random(f"{seed} {what} {count}")
    for _ in range(ROUNDS):
        draw = drawn_transactions if what == "marker" else rng.choice([keyed, with_own_keys])
        log = draw(rng)
        hole = with_hole(rng, log, what)
        rows = compared(at_hand(beside(rng, log, hole.copy, count)), by_keys=by_keys)

        lost = (DifferenceKind.LOST, hole.base, hole.until, ("b",), OTHERS[count])
        assert findings(rows) == [lost]


@drawn
@pytest.mark.parametrize("at_hand", [noted, bare])
@pytest.mark.parametrize("draw", [keyed, with_own_keys, drawn_transactions])
def test_a_hole_hides_no_other(
    seed: int,
    draw: Callable[[random.Random], list[Batch]],
    at_hand: Callable[..., dict[str, LogCopy]],
) -> None:
    """Without a checkpoint, keys tell that it was not the cleaner that left several gaps."""
    rng = random.Random(f"{seed} several {draw.__name__}")
    for _ in range(ROUNDS):
        log = draw(rng)
        gone = sorted(rng.sample(range(25, 58), 3))
        wrong = rolled(rng, [one for at, one in enumerate(log) if at not in gone])
        wrong.epochs = rolled(rng, log).epochs
        copies = at_hand(beside(rng, log, wrong, 3))

        covered = _offsets(findings(compared(copies)))
        assert covered == {at for one in gone for at in range(log[one].base, log[one].last + 1)}


def _offsets(found: list[tuple]) -> set[int]:
    return {at for _, low, high, *_ in found for at in range(low, high)}


@drawn
@pytest.mark.parametrize("what", ["batch", "record", "segment"])
def test_a_hole_above_the_cleaners_offset_is_lost_in_a_compacted_log(seed: int, what: str) -> None:
    rng = random.Random(f"{seed} above {what}")
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        upto = log[20].base
        thin = compacted(log, upto)
        hole = with_hole(rng, thin, what, least=upto)
        copies = noted(beside(rng, thin, hole.copy, 3))
        for copy in copies.values():
            copy.cleaner_offset = upto

        assert findings(compared(copies)) == [
            (DifferenceKind.LOST, hole.base, hole.until, ("b",), ("a", "c"))
        ]


@drawn
@pytest.mark.parametrize("by_keys", [False, True])
def test_a_marker_is_lost_below_the_cleaners_offset_if_its_transaction_is_there(
    seed: int, *, by_keys: bool
) -> None:
    rng = random.Random(f"{seed} markers")
    counts = {True: 0, False: 0}
    for _ in range(5 * ROUNDS):
        _, replicas = lived(rng, "ab")
        copies = {name: replica.copy() for name, replica in replicas.items()}
        cleaned = max(replica.cleaned for replica in replicas.values())
        hole = _without_marker(rng, replicas["b"].batches, cleaned)
        if hole is None:
            continue
        hole.copy.cleaner_offset = copies["b"].cleaner_offset
        copies["b"] = hole.copy
        is_lost = _is_needed(replicas["b"].batches, hole.base) and any(
            batch.base == hole.base for batch in replicas["a"].batches
        )
        expected = [(DifferenceKind.LOST, hole.base, hole.until, ("b",), ("a",))]

        assert findings(compared(copies, by_keys=by_keys)) == (expected if is_lost else [])
        counts[is_lost] += 1
    assert min(counts.values()) > 2


def _is_needed(batches: list[Batch], base: int) -> bool:
    """Tell whether a batch of the transaction stands before its marker."""
    (producer,) = (one.producer_id for one in batches if one.base == base)
    own = [one for one in batches if one.producer_id == producer and one.base < base]
    return bool(own) and own[-1].is_commit is None


def _without_marker(rng: random.Random, batches: list[Batch], until: int) -> Hole | None:
    """Lose a marker below an offset."""
    markers = [one for one in batches if one.is_commit is not None and one.base < until]
    if not markers:
        return None
    gone = rng.choice(markers)
    copy = rolled(rng, [one for one in batches if one is not gone], base=0)
    copy.high_watermark, copy.epochs = 0, ((0, 0),)
    return Hole(copy, gone.base, gone.last + 1)


@pytest.mark.slow
@drawn
def test_a_batch_that_was_inserted_makes_one_copy_wrong_to_its_end(seed: int) -> None:
    rng = random.Random(f"{seed} inserted")
    for _ in range(3 * ROUNDS):
        log = drawn_log(rng)
        at = rng.randint(1, 50)
        moved = inserted(log, at)
        rows = findings(compared(beside(rng, log, rolled(rng, moved), 3)))

        assert {row[3:] for row in rows} == {(("b",), ("a", "c"))}
        assert {row[0] for row in rows} <= {DifferenceKind.CONFLICT, DifferenceKind.EPOCHS}
        assert _offsets(rows) == set(range(log[at].base, moved[-1].last + 1))


# What tells that a log was compacted.


class _Keys:
    """Copies that hold these keys at offsets 0, 1, …"""

    def __init__(self, keys: str) -> None:
        self._keys = keys

    def own(self, copy: str, offset: int) -> Iterator[Keyed]:
        del copy, offset
        for at, key in enumerate(self._keys):
            yield Keyed(at, 0 if key == "-" else ord(key), has_value=True)


NOTED = Copy("a", 0, 9, cleaner_offset=5, has_cleaner_checkpoint=True)
UNNAMED = Copy("a", 0, 9, has_cleaner_checkpoint=True)
PLAIN = Copy("a", 0, 9)


@pytest.mark.parametrize(
    ("copies", "end"),
    [
        ([NOTED, PLAIN], 5),
        ([NOTED, UNNAMED], 5),
        ([NOTED, PLAIN._replace(cleaner_offset=7)], 7),
        ([NOTED, PLAIN._replace(is_compact=False)], 5),
        ([PLAIN, PLAIN], -1),
        ([PLAIN._replace(gaps=1), PLAIN._replace(gaps=1)], -1),
        ([PLAIN._replace(gaps=2), PLAIN], UNBOUNDED),
        ([PLAIN._replace(gaps=2), UNNAMED], -1),
        ([PLAIN._replace(gaps=2, is_tiered=True), PLAIN], -1),
        ([PLAIN._replace(gaps=2, is_compact=False), PLAIN], -1),
        ([PLAIN._replace(gaps=1, is_compact=True), UNNAMED], UNBOUNDED),
    ],
)
def test_a_checkpoint_tells_then_the_policy_then_gaps_elsewhere(
    copies: list[Copy], end: int
) -> None:
    assert Compaction(copies, _Keys("abc")).end_of("a") == end  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keys", "end"), [("abcd", UNBOUNDED), ("abca", 3), ("ab-d", 2), ("-", 0), ("", UNBOUNDED)]
)
def test_the_cleaner_leaves_no_key_twice_and_none_that_is_null(keys: str, end: int) -> None:
    copies = [PLAIN._replace(gaps=2)]

    assert Compaction(copies, _Keys(keys)).end_of("a") == end  # type: ignore[arg-type]
