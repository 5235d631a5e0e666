"""Leader-epoch checkpoints that contradict batches or each other, and those that are sound."""

import random

import pytest

from kafka_segments.verbs.copies.divergence.decide.compaction import Compaction
from kafka_segments.verbs.copies.divergence.decide.copies import (
    Copy,
    DifferenceKind,
    Divergence,
    HeldEpoch,
)
from kafka_segments.verbs.copies.divergence.decide.epochs import wrong_epochs
from kafka_segments.verbs.copies.divergence.decide.logs import compare_log
from support.logs.log_copies import (
    LogCopy,
    compared,
    cut_epochs,
    drawn_log,
    epochs_of,
    forked,
    rolled,
)

ROUNDS = 10

# Batches of epoch 1 at offsets 0 to 99, of 2 up to 199, of 4 up to 299.
HELD = (HeldEpoch(1, 0, 99), HeldEpoch(2, 100, 199), HeldEpoch(4, 200, 299))
SOUND = ((1, 0), (2, 100), (4, 200))


def copy(
    name: str,
    epochs: tuple[tuple[int, int], ...] = SOUND,
    held: tuple[HeldEpoch, ...] = HELD,
    *,
    start: int = 0,
    end: int = 300,
    cleaned: int | None = None,
) -> Copy:
    return Copy(name, start, end, epochs=epochs, held_epochs=held, cleaner_offset=cleaned)


def evidence(*copies: Copy) -> Compaction:
    """Tell of compaction of copies whose batches are not there."""
    return Compaction(copies, None)  # type: ignore[arg-type]


def told(*copies: Copy, rows: tuple[Divergence, ...] = ()) -> list[tuple]:
    found = wrong_epochs(copies, rows, evidence(*copies))
    assert {row.kind for row in found} <= {DifferenceKind.EPOCHS}
    assert all(row.is_finding for row in found)
    return [(row.from_offset, row.until_offset, row.copies, row.right) for row in found]


@pytest.mark.parametrize(
    "epochs",
    [
        SOUND,
        (),  # no file
        ((2, 100), (4, 200)),  # begun when the log was there
        ((4, 200),),
        ((1, 50), (2, 100), (4, 200)),  # the log start has moved
        ((2, 150), (4, 200)),
        (*SOUND, (5, 300)),  # a leader that wrote nothing
        (*SOUND, (7, 400)),
    ],
)
def test_a_sound_checkpoint_is_no_finding(epochs: tuple[tuple[int, int], ...]) -> None:
    assert told(copy("a", epochs), copy("b")) == []
    assert told(copy("b"), copy("a", epochs)) == []


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [
        (((1, 0), (2, 90), (4, 200)), [(90, 100)]),
        (((1, 0), (2, 110), (4, 200)), [(100, 110)]),
        (((1, 0), (4, 200)), [(100, 200)]),
        (((1, 0), (2, 100)), [(200, 300)]),
        (((1, 0), (2, 100), (3, 150), (4, 200)), [(150, 200)]),
        (((1, 0), (2, 100), (4, 199)), [(199, 200)]),
        (((1, 0), (9, 100)), [(100, 200), (200, 300)]),
    ],
)
def test_what_a_checkpoint_says_of_its_own_batches_is_wrong(
    epochs: tuple[tuple[int, int], ...], expected: list[tuple[int, int]]
) -> None:
    rows = told(copy("a", epochs), copy("b"))

    assert rows == [(*span, ("a",), ("b",)) for span in expected]


def test_a_log_alone_can_contradict_its_checkpoint() -> None:
    alone = copy("a", ((1, 0), (2, 90), (4, 200)))
    [row] = wrong_epochs([alone], [], evidence(alone))

    assert row.detail == ("leader-epoch-checkpoint of a says epoch 2, its own batches have 1")


def test_batches_in_front_of_the_log_start_do_not_count() -> None:
    assert told(copy("a", ((2, 90), (4, 200)), start=100)) == []
    assert told(copy("a", ((2, 90), (4, 200)), start=99)) == [(99, 100, ("a",), ())]


def test_the_batches_of_another_copy_count_up_to_where_both_go_the_same_way() -> None:
    early = ((1, 0), (2, 90), (4, 200))
    none = copy("a", early, held=())

    assert told(none, copy("b")) == [(90, 100, ("a",), ("b",))]
    assert told(copy("a", early, held=(), end=95), copy("b")) == [(90, 95, ("a",), ("b",))]
    assert told(copy("a", early, held=(), end=90), copy("b")) == []
    fork = Divergence(DifferenceKind.FORK, True, 95, 300, ("b",), ("a",))
    assert told(none, copy("b"), rows=(fork,)) == [(90, 95, ("a",), ("b",))]
    fork = Divergence(DifferenceKind.FORK, True, 90, 300, ("b",), ("a",))
    assert told(none, copy("b"), rows=(fork,)) == []
    [row] = wrong_epochs([none, copy("b")], [], evidence(none, copy("b")))
    assert row.detail.endswith("the batches of b have 1")


def test_compaction_lets_an_epoch_begin_late_but_not_early() -> None:
    late = copy("a", ((1, 0), (4, 220)), held=(HeldEpoch(1, 0, 0), HeldEpoch(4, 220, 299)))
    early = copy("a", ((1, 0), (2, 90), (4, 200)), held=(HeldEpoch(1, 0, 0),), cleaned=250)

    assert told(late, copy("b", cleaned=250)) == []
    assert told(early, copy("b")) == [(90, 100, ("a",), ("b",))]
    assert told(late, copy("b", cleaned=100)) == [
        (100, 200, ("a",), ("b",)),
        (200, 220, ("a",), ("b",)),
    ]


@pytest.mark.parametrize(
    "kind",
    [DifferenceKind.ROT, DifferenceKind.MISPLACED, DifferenceKind.UNREAD, DifferenceKind.CONFLICT],
)
def test_a_batch_whose_bytes_are_wrong_tells_nothing_of_a_checkpoint(kind: DifferenceKind) -> None:
    rotten = (HeldEpoch(1, 0, 99), HeldEpoch(3, 100, 109), HeldEpoch(4, 200, 299))

    rows = (Divergence(kind, True, 100, 110, ("a",)),)
    assert told(copy("a", held=rotten), rows=rows) == []
    assert told(copy("b", held=()), copy("a", (), rotten), rows=rows) == []
    assert told(copy("b", held=()), copy("a", (), rotten)) == [(100, 110, ("b",), ())]
    elsewhere = (Divergence(kind, True, 110, 120, ("a",)),)
    assert told(copy("a", held=rotten), rows=elsewhere) == [(100, 110, ("a",), ())]
    again = (HeldEpoch(1, 0, 120), HeldEpoch(2, 100, 199))
    assert told(copy("a", held=again)) == []


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        ((100, 110), [(100, 110, ("a", "b"), ())]),
        ((100, 110, 100), [(100, 110, ("b",), ("a", "c"))]),
        ((100, 100, 110), [(100, 110, ("c",), ("a", "b"))]),
        ((100, 110, 120), [(100, 120, ("a", "b", "c"), ())]),
        ((100, 110, 100, 110), [(100, 110, ("a", "b", "c", "d"), ())]),
        ((100, 100), []),
    ],
)
def test_where_no_batch_tells_an_epoch_begins_at_one_offset(
    starts: tuple[int, ...], expected: list[tuple]
) -> None:
    copies = [
        copy(name, ((1, 0), (2, start)), held=())
        for name, start in zip("abcd", starts, strict=False)
    ]

    assert told(*copies) == expected


@pytest.mark.parametrize(
    ("first", "expected"),
    [(90, [(90, 100, ("a",), ("b", "c"))]), (100, []), (110, [])],
)
def test_of_a_first_entry_it_is_known_that_its_epoch_began_no_later(
    first: int, expected: list[tuple]
) -> None:
    cut = copy("a", ((2, first),), held=())
    others = [copy(name, ((1, 0), (2, 100)), held=()) for name in "bc"]

    assert told(cut, *others) == expected
    assert told(cut, copy("b", ((2, 150),), held=())) == []


def test_entries_count_where_both_logs_are_the_same() -> None:
    pair = [copy(name, ((1, 0), (2, at)), held=()) for name, at in (("a", 100), ("b", 110))]
    fork = Divergence(DifferenceKind.FORK, True, 100, 300, ("b",), ("a",))

    assert told(*pair, rows=(fork,)) == []
    assert told(pair[0]._replace(end=100), pair[1]) == []
    assert told(pair[0]._replace(end=101), pair[1]) != []
    assert told(pair[0]._replace(cleaner_offset=101), pair[1]) == []
    assert told(pair[0]._replace(cleaner_offset=100), pair[1]) != []


def test_batches_tell_which_of_two_entries_is_wrong() -> None:
    assert told(copy("a", ((1, 0), (2, 90), (4, 200))), copy("b", held=())) == [
        (90, 100, ("a",), ("b",))
    ]


# Whole logs.


@pytest.mark.drawn
def test_an_entry_that_was_moved_in_a_drawn_log_is_found(seed: int) -> None:
    rng = random.Random(seed)
    found = 0
    for _ in range(4 * ROUNDS):
        log = drawn_log(rng)
        copies = {name: rolled(rng, log) for name in "ab"}
        entries = list(copies["b"].epochs)
        if len(entries) < 2:
            continue
        at = rng.randrange(1, len(entries))
        epoch, start = entries[at]
        moved = start + rng.choice([-1, 1])
        entries[at] = epoch, moved
        copies["b"].epochs = tuple(entries)
        rows = [row for row in compared(copies) if row.is_finding]

        assert {row.kind for row in rows} == {DifferenceKind.EPOCHS}
        assert all("b" in row.copies for row in rows)
        assert {(row.from_offset, row.until_offset) for row in rows} == {
            (min(start, moved), max(start, moved))
        }
        found += 1

    assert found > ROUNDS


@pytest.mark.drawn
def test_checkpoints_that_live_with_their_logs_are_sound(seed: int) -> None:
    rng = random.Random(f"{seed} sound")
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        at = rng.randint(1, 55)
        copies = {
            "leader": rolled(rng, forked(rng, log, at)),
            "older": rolled(rng, log),
            "cut": _cut(rolled(rng, log), rng),
            "none": rolled(rng, log, has_epochs=False),
        }
        copies["leader"].epochs = (
            *epochs_of(log[:at]),
            (log[-1].epoch + 1, log[at].base),
        )

        assert DifferenceKind.EPOCHS not in {row.kind for row in compared(copies)}


def _cut(copy: LogCopy, rng: random.Random) -> LogCopy:
    copy.segments = copy.segments[rng.randrange(len(copy.segments)) :]
    copy.epochs = cut_epochs(copy.epochs, copy.segments[0][0])
    return copy


# The front of a log.


@pytest.mark.drawn
def test_a_lost_first_segment_is_told_by_the_epochs_that_did_not_move(seed: int) -> None:
    rng = random.Random(f"{seed} front")
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        copies = {name: rolled(rng, log) for name in "ab"}
        while len(copies["b"].segments) < 2:
            copies["b"] = rolled(rng, log)
        copies["b"].high_watermark = log[-1].last + 1
        del copies["b"].segments[0]
        begin = copies["b"].segments[0][0]
        front = [
            (row.kind, row.from_offset, row.until_offset, row.copies, row.right)
            for row in compared(copies)
            if row.kind in (DifferenceKind.LOST, DifferenceKind.LATER_START)
        ]

        assert front == [(DifferenceKind.LOST, log[0].base, begin, ("b",), ("a",))]
        copies["b"].epochs = cut_epochs(copies["b"].epochs, begin)
        assert {row.kind for row in compared(copies)} == {
            DifferenceKind.LATER_START,
            DifferenceKind.EQUAL,
        }


@pytest.mark.parametrize(
    ("start", "first_epoch", "is_noted", "cut_at"),
    [
        (100, 0, False, 0),
        (100, 50, False, 50),
        (100, 100, False, 100),
        (100, 150, False, 100),
        (100, None, False, 100),
        (100, 0, True, 100),  # tiered storage, or not known
    ],
)
def test_the_front_that_a_broker_took_ends_where_the_epochs_begin(
    start: int, first_epoch: int | None, cut_at: int, *, is_noted: bool
) -> None:
    epochs = () if first_epoch is None else ((3, first_epoch), (4, 170))

    assert Copy("a", start, 200, epochs=epochs, is_start_noted=is_noted).cut_at == cut_at


@pytest.mark.parametrize("first", [0, 60])
def test_what_was_taken_in_front_of_what_is_lost_is_a_later_start(first: int) -> None:
    whole = Copy("a", first, 200)
    part = Copy("b", 100, 200, epochs=((3, 50),), is_start_noted=False)
    rows = compare_log([whole, part], [], None, None)  # type: ignore[arg-type]

    tier = Copy("c", 150, 200, is_tiered=True)
    with_tier = compare_log([whole, part, tier], [], None, None)  # type: ignore[arg-type]
    assert DifferenceKind.LOST not in {row.kind for row in with_tier}
    later = [(DifferenceKind.LATER_START, 0, 50)] if first < 50 else []
    assert [(row.kind, row.from_offset, row.until_offset) for row in rows] == [
        *later,
        (DifferenceKind.LOST, max(50, first), 100),
        (DifferenceKind.EQUAL, 100, 200),
    ]
