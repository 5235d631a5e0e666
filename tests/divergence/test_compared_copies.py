"""Copies that differ by drawn histories: each fault is found and named, and nothing else."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from kafka_segments.verbs.copies.divergence.decide.copies import (
    Copy,
    DifferenceKind,
    Divergence,
    of_other_clusters,
    with_quorum_end,
)
from support.logs.log_copies import (
    Batch,
    LogCopy,
    base_of,
    compacted,
    compared,
    cut_epochs,
    drawn_log,
    epochs_of,
    flipped,
    forked,
    recompressed,
    rolled,
)

ROUNDS = 10
LENGTH = range(8, 12)
MAGIC_AT = 16
pytestmark = pytest.mark.drawn


def findings(rows: list[Divergence]) -> list[Divergence]:
    """Give the rows that someone must look at."""
    return [row for row in rows if row.is_finding]


def named(rows: list[Divergence]) -> set[tuple]:
    """Give kinds, the copies that are wrong, and those that are right."""
    return {(row.kind, row.copies, row.right) for row in findings(rows)}


# What happens to a copy without a fault.


def _other_rolls(rng: random.Random, log: list[Batch]) -> LogCopy:
    return rolled(rng, log)


def _without_checkpoints(rng: random.Random, log: list[Batch]) -> LogCopy:
    return rolled(rng, log, has_epochs=False)


def _not_yet_replicated(rng: random.Random, log: list[Batch]) -> LogCopy:
    return rolled(rng, log[: rng.randint(45, 59)])


def _torn(rng: random.Random, log: list[Batch]) -> LogCopy:
    copy = rolled(rng, log[: rng.randint(45, 59)])
    last = len(copy.segments) - 1
    more = rng.choice([bytes(4096), log[59].written()[: rng.randint(1, 60)]])
    copy.spoil(last, copy.file(last) + more)
    return copy


def _retained(rng: random.Random, log: list[Batch]) -> LogCopy:
    copy = rolled(rng, log)
    copy.segments = copy.segments[rng.randrange(len(copy.segments)) :]
    copy.epochs = cut_epochs(copy.epochs, copy.segments[0][0])
    return copy


def _records_deleted(rng: random.Random, log: list[Batch]) -> LogCopy:
    copy = rolled(rng, log)
    copy.log_start = rng.randint(log[0].base, log[44].last)
    copy.epochs = cut_epochs(copy.epochs, copy.log_start)
    return copy


def _recompressed(rng: random.Random, log: list[Batch]) -> LogCopy:
    first = rng.randrange(45)
    return rolled(rng, [*log[:first], *recompressed(log[first:])])


def _compacted(rng: random.Random, log: list[Batch]) -> LogCopy:
    at = rng.randint(20, 44)
    copy = rolled(rng, compacted(log, log[at].base), base=log[0].base)
    copy.cleaner_offset = log[at].base
    return copy


def _compacted_elsewhere(rng: random.Random, log: list[Batch]) -> LogCopy:
    return replace(_compacted(rng, log), cleaner_offset=None)


HARMLESS = [
    _other_rolls,
    _without_checkpoints,
    _not_yet_replicated,
    _torn,
    _retained,
    _records_deleted,
    _recompressed,
    _compacted,
]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_what_brokers_do_by_themselves_is_no_fault(seed: int, count: int) -> None:
    rng = random.Random(f"{seed} {count}")
    told = []
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        drawn = [rng.choice(HARMLESS) for _ in range(count)]
        copies = {f"c{at}": change(rng, log) for at, change in enumerate(drawn)}
        copies["c0"].high_watermark = log[45].base
        told += [(row, [change.__name__ for change in drawn]) for row in findings(compared(copies))]

    assert told == []


def test_compaction_is_told_by_the_batches_where_no_checkpoint_came_along(seed: int) -> None:
    rng = random.Random(seed)
    log = drawn_log(rng, keys=300)
    rows = compared({"a": rolled(rng, log), "b": _compacted_elsewhere(rng, log)})

    assert {row.kind for row in rows} == {DifferenceKind.COMPACTION, DifferenceKind.EQUAL}
    assert findings(rows) == []


# Faults.


def _beside(rng: random.Random, log: list[Batch], wrong: LogCopy, count: int) -> dict:
    """Give copies, of which "b" is the wrong one."""
    names = {1: "a", 2: "ac"}[count - 1]
    copies = {name: rolled(rng, log) for name in names}
    return dict(sorted({**copies, "b": wrong}.items()))


def _others(count: int) -> tuple[str, ...]:
    return ("a",) if count == 2 else ("a", "c")


def _found_once(
    rows: list[Divergence], kinds: set[DifferenceKind], right: tuple[str, ...], base: int, last: int
) -> bool:
    """Tell whether all findings are of copy b, of these kinds, and at these offsets."""
    found = findings(rows)
    at = [row for row in found if row.from_offset <= last and base < row.until_offset]
    return bool(at) and all(
        row.kind in kinds and row.copies == ("b",) and row.right == right for row in found
    )


@pytest.mark.parametrize("count", [2, 3])
def test_a_flipped_bit_anywhere_is_found_and_the_right_copies_are_named(
    seed: int, count: int
) -> None:
    rng = random.Random(f"{seed} {count}")
    missed = []
    for _ in range(2 * ROUNDS):
        log = drawn_log(rng)
        wrong = rolled(rng, log)
        index = rng.randrange(len(wrong.segments))
        parts = wrong.segments[index][1]
        at = rng.randrange(len(parts))
        place = rng.choice([rng.randrange(len(parts[at])), rng.randrange(61)])
        bit = rng.randrange(8)
        wrong.spoil(
            index, b"".join([*parts[:at], flipped(parts[at], place, bit), *parts[at + 1 :]])
        )
        hurt = next(one for one in log if one.written() == parts[at])
        rows = compared(_beside(rng, log, wrong, count))
        kinds = {DifferenceKind.ROT, DifferenceKind.MISPLACED}
        if place in LENGTH and hurt is log[-1]:
            kinds.add(
                DifferenceKind.BEHIND
            )  # more bytes than there are: as a write that was not finished
        if not _found_once(rows, kinds, _others(count), hurt.base, hurt.last):
            missed.append((place, bit, hurt.base, hurt.last, at, len(parts), findings(rows)))

    assert missed == []


def test_a_magic_that_no_format_has_is_bit_rot_though_the_checksum_is_right(seed: int) -> None:
    rng = random.Random(f"{seed} magic")
    for bit in range(8):
        log = drawn_log(rng)
        number = rng.randrange(len(log))
        wrong = rolled(rng, log)
        for _, parts in wrong.segments:
            for at, part in enumerate(parts):
                if part == log[number].written():
                    parts[at] = flipped(part, MAGIC_AT, bit)
        rows = compared(_beside(rng, log, wrong, 3))

        assert [
            (row.kind, row.from_offset, row.until_offset, row.copies, row.right)
            for row in findings(rows)
        ] == [(DifferenceKind.ROT, log[number].base, log[number].last + 1, ("b",), ("a", "c"))]


def test_without_checkpoints_the_epochs_before_the_last_batch_tell_which_copy_is_wrong(
    seed: int,
) -> None:
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        log = [replace(batch, epoch=batch.epoch + 5) for batch in drawn_log(rng)]
        spoiled = [*log[:-1], replace(log[-1], epoch=log[-2].epoch - 1)]
        copies = {
            name: rolled(rng, batches, has_epochs=False)
            for name, batches in (("a", log), ("b", spoiled))
        }

        # rot or, where nothing else differs so far, a fork
        assert {row[1:] for row in named(compared(copies))} == {(("b",), ("a",))}


@pytest.mark.parametrize("more", [1, 2, 3])
def test_a_size_that_leads_across_sound_batches_hides_none(seed: int, more: int) -> None:
    """To a header, to the end of the segment, and close to the end of what is read at once."""
    rng = random.Random(f"{seed} across {more}")
    for short in (0, 0, 1, 30, 60):
        log = drawn_log(rng)
        wrong = rolled(rng, log)
        long = [at for at, (_, parts) in enumerate(wrong.segments) if len(parts) > more]
        parts = wrong.segments[rng.choice(long)][1]
        at = rng.randrange(len(parts) - more)
        length = sum(map(len, parts[at : at + more + 1])) - LENGTH.start - len(LENGTH) - short
        size = length.to_bytes(len(LENGTH), "big")
        hurt = next(one for one in log if one.written() == parts[at])
        parts[at] = parts[at][: LENGTH.start] + size + parts[at][LENGTH.stop :]
        rows = compared(_beside(rng, log, wrong, 3))

        assert [
            (row.kind, row.from_offset, row.until_offset, row.copies, row.right)
            for row in findings(rows)
        ] == [(DifferenceKind.ROT, hurt.base, hurt.last + 1, ("b",), ("a", "c"))]


@pytest.mark.parametrize("count", [2, 3])
def test_a_zeroed_page_is_found(seed: int, count: int) -> None:
    rng = random.Random(f"{seed} {count}")
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        wrong = rolled(rng, log)
        index = rng.randrange(len(wrong.segments))
        data = wrong.file(index)
        page = rng.randrange(len(data))
        spoiled = data[:page] + bytes(min(512, len(data) - page)) + data[page + 512 :]
        wrong.spoil(index, spoiled)
        rows = compared(_beside(rng, log, wrong, count))

        assert {row[1:] for row in named(rows)} <= {(("b",), _others(count))}, findings(rows)
        assert named(rows) or spoiled == data


def _swap(first: int) -> Callable[[LogCopy], None]:
    def swap(copy: LogCopy) -> None:
        one, other = copy.file(first), copy.file(first + 1)
        copy.spoil(first, other)
        copy.spoil(first + 1, one)

    return swap


@pytest.mark.parametrize("count", [2, 3])
def test_segments_that_were_exchanged_are_found(seed: int, count: int) -> None:
    rng = random.Random(f"{seed} {count}")
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        wrong = rolled(rng, log)
        while len(wrong.segments) < 3:
            wrong = rolled(rng, log)
        _swap(rng.randrange(len(wrong.segments) - 1))(wrong)
        rows = compared(_beside(rng, log, wrong, count))

        assert named(rows) == {(DifferenceKind.MISPLACED, ("b",), _others(count))}, findings(rows)


def test_a_segment_of_another_log_is_outvoted(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        other = [
            replace(
                batch, records=tuple((offset, b"x", b"other") for offset, _, _ in batch.records)
            )
            for batch in log
        ]
        first = rng.randrange(50)
        wrong = rolled(rng, [*log[:first], *other[first : first + 5], *log[first + 5 :]])
        rows = compared(_beside(rng, log, wrong, 3))

        assert named(rows) == {(DifferenceKind.CONFLICT, ("b",), ("a", "c"))}
        assert named(compared({"a": rolled(rng, log), "b": wrong})) == {
            (DifferenceKind.CONFLICT, ("a", "b"), ())
        }


@pytest.mark.parametrize("count", [2, 3])
def test_a_lost_segment_is_found_with_its_offsets(seed: int, count: int) -> None:
    rng = random.Random(f"{seed} {count}")
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        wrong = rolled(rng, log)
        while len(wrong.segments) < 3:
            wrong = rolled(rng, log)
        lost = rng.randrange(1, len(wrong.segments) - 1)
        base, until = wrong.segments[lost][0], wrong.segments[lost + 1][0]
        del wrong.segments[lost]
        rows = compared(_beside(rng, log, wrong, count))

        assert [
            (row.kind, row.from_offset, row.until_offset, row.copies, row.right)
            for row in findings(rows)
        ] == [(DifferenceKind.LOST, base, until, ("b",), _others(count))]


def test_a_lost_segment_that_was_not_compacted_yet_is_found_in_a_compacted_log(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        wrong = _compacted(rng, log)
        lost = [
            at
            for at, (base, _) in enumerate(wrong.segments[:-1])
            if at and base >= (wrong.cleaner_offset or 0)
        ]
        if not lost:
            continue
        base, until = wrong.segments[lost[0]][0], wrong.segments[lost[0] + 1][0]
        del wrong.segments[lost[0]]
        rows = compared({"a": rolled(rng, log), "b": wrong})

        assert [(row.kind, row.from_offset, row.until_offset) for row in findings(rows)] == [
            (DifferenceKind.LOST, base, until)
        ]


@pytest.mark.parametrize("count", [2, 3])
def test_a_fork_is_found_at_its_epoch_and_offset(seed: int, count: int) -> None:
    rng = random.Random(f"{seed} {count}")
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        at = rng.randint(1, 58)
        newer = forked(rng, log, at)
        copies = {name: rolled(rng, newer) for name in _others(count)}
        copies["b"] = rolled(rng, log)
        rows = compared(copies)

        found = findings(rows)
        assert [(row.kind, row.copies, row.right) for row in found] == [
            (DifferenceKind.FORK, ("b",), _others(count))
        ]
        assert (found[0].from_offset, found[0].epoch) == (log[at].base, log[at - 1].epoch)
        assert found[0].until_offset == max(log[-1].last, newer[-1].last) + 1


def test_records_of_an_epoch_that_ended_earlier_are_not_yet_truncated(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        at = rng.randint(1, 59)
        leader = rolled(rng, log[:at])
        leader.epochs = (*epochs_of(log[:at]), (log[-1].epoch + 1, log[at].base))
        rows = compared({"a": leader, "b": rolled(rng, log)})

        assert [
            (row.kind, row.from_offset, row.until_offset, row.copies, row.right)
            for row in findings(rows)
        ] == [(DifferenceKind.AHEAD, log[at].base, log[-1].last + 1, ("b",), ("a",))]


def test_a_copy_that_ends_below_the_high_watermark_is_behind_up_to_it(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        cut, acknowledged = sorted(rng.sample(range(1, 60), 2))
        leader = rolled(rng, log)
        leader.high_watermark = log[acknowledged].base
        rows = [
            row
            for row in compared({"a": leader, "b": rolled(rng, log[:cut])})
            if row.kind == DifferenceKind.BEHIND
        ]

        assert [(row.from_offset, row.until_offset, row.is_finding) for row in rows] == [
            (log[cut].base, log[acknowledged].base, True),
            (log[acknowledged].base, log[-1].last + 1, False),
        ]


@pytest.mark.parametrize("is_forked", [False, True])
def test_what_every_copy_lacks_behind_its_end_is_told_up_to_the_high_watermark(
    seed: int, *, is_forked: bool
) -> None:
    """A side of a fork goes by its own."""
    rng = random.Random(f"{seed} {is_forked}")
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        ends = [rolled(rng, log[: rng.randint(40, 50)]) for _ in range(2)]
        noted = rng.choice(ends)
        noted.high_watermark = log[55].base
        copies = {"a": ends[0], "b": ends[1]}
        if is_forked:
            copies["c"] = rolled(rng, forked(rng, log, 30, more=9))
            copies["c"].high_watermark = log[30].base
        end = max(base_of(copy.segments[-1][1][-1]) for copy in ends)
        end = next(one.last + 1 for one in log if one.base == end)
        rows = [row for row in compared(copies) if row.is_behind_all]

        assert [row[:5] for row in rows] == [
            (DifferenceKind.BEHIND, True, end, log[55].base, ("a", "b"))
        ]
        noted.high_watermark = end
        assert not [row for row in compared(copies) if row.is_behind_all]


def test_a_copy_of_another_cluster_is_held_against_its_own_high_watermark() -> None:
    lost, whole = of_other_clusters([Copy("a", 0, 9, 10, ((0, 0),)), Copy("b", 0, 9, 9)])

    assert (lost.high_watermark, whole.high_watermark) == (10, 0)
    assert not lost.epochs


@pytest.mark.parametrize(
    ("ends", "committed"),
    [((60, 60, 50), 60), ((60, 50, 50), 50), ((60, 55, 50, 50, 40), 50), ((60, 55, 50, 40), 50)],
)
def test_of_the_metadata_log_what_most_voters_hold_is_committed(
    ends: tuple[int, ...], committed: int
) -> None:
    copies = [Copy(f"n{at}", 0, end) for at, end in enumerate(ends)]

    assert {copy.high_watermark for copy in with_quorum_end(copies)} == {committed}
    assert with_quorum_end(copies[:2]) == copies[:2]


def test_what_no_copy_holds_any_more_is_still_told(seed: int) -> None:
    rng = random.Random(seed)
    log = drawn_log(rng)
    both = [rolled(rng, log) for _ in range(2)]
    for copy in both:
        index = len(copy.segments) // 2
        at = len(copy.file(index)) - 1
        copy.spoil(index, flipped(copy.file(index), at))
    rows = compared({"a": both[0], "b": both[1]})

    assert {row.kind for row in findings(rows)} == {DifferenceKind.ROT}
    assert {row.copies for row in findings(rows)} == {("a",), ("b",)}


def test_a_segment_whose_every_other_batch_is_bad_is_read_to_its_end(seed: int) -> None:
    rng = random.Random(seed)
    log = drawn_log(rng)
    wrong = LogCopy([(log[0].base, [])], log[0].base, epochs=epochs_of(log))
    for number, batch in enumerate(log):
        written = batch.written()
        wrong.segments[0][1].append(flipped(written, 61) if number % 2 else written)
    rows = compared({"a": rolled(rng, log), "b": wrong})

    hurt = [(one.base, one.last + 1) for one in log[1::2]]
    assert [(row.from_offset, row.until_offset) for row in findings(rows)] == hurt
    assert named(rows) == {(DifferenceKind.ROT, ("b",), ("a",))}
