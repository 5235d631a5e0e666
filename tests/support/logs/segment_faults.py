"""Faults of segments of a copy, and of its end, leaders and leader epochs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from support.logs.batch_faults import is_data
from support.logs.faulty_copies import (
    AHEAD,
    BEHIND,
    CONFLICT,
    EPOCHS,
    FORK,
    LOST,
    MISPLACED,
    ROT,
    Drawn,
    Fault,
    Happened,
)
from support.logs.log_copies import LogCopy, base_of, epochs_of, forked, inserted

SEGMENT_FAULTS: dict[str, Fault] = {}


def _of_segment(
    kinds: tuple[str, ...],
    edit: Callable[[LogCopy, int, random.Random], None],
    *,
    is_cut: bool = False,
) -> Fault:
    """Let something happen to a segment that has others on both sides."""

    def fault(drawn: Drawn, name: str) -> Happened | None:
        at = drawn.batch(more=3)
        if at is None:
            return None
        low, high = drawn.log[at].base, drawn.log[at + 3].last + 1
        rng = random.Random(drawn.rng.random())

        def change(copy: LogCopy) -> None:
            edit(copy, _own_segment(copy, low, high), rng)

        drawn.edits.append((name, change))
        found = drawn.of_batch(kinds, name, at, more=3)
        return found._replace(base=drawn.log[at + 2].base) if is_cut else found

    return fault


def _own_segment(copy: LogCopy, low: int, high: int) -> int:
    """Give a segment to the batches from one offset to before another; return its number."""
    segments: list[tuple[int, list[bytes]]] = []
    for base, parts in copy.segments:
        if not low < base < high:
            segments.append((base, []))
        for part in parts:
            if base_of(part) in (low, high) and segments[-1][0] != base_of(part):
                segments.append((base_of(part), []))
            segments[-1][1].append(part)
    copy.segments = segments
    return [base for base, _ in segments].index(low)


def _remove(copy: LogCopy, number: int, _: random.Random) -> None:
    del copy.segments[number]


def _empty(copy: LogCopy, number: int, _: random.Random) -> None:
    copy.spoil(number, b"")


def _zero(copy: LogCopy, number: int, _: random.Random) -> None:
    copy.spoil(number, bytes(len(copy.file(number))))


def _cut_between(copy: LogCopy, number: int, _: random.Random) -> None:
    copy.spoil(number, b"".join(copy.segments[number][1][:2]))


def _cut_inside(copy: LogCopy, number: int, rng: random.Random) -> None:
    front, third = b"".join(copy.segments[number][1][:2]), copy.segments[number][1][2]
    copy.spoil(number, front + third[: rng.randint(1, len(third) - 1)])


SEGMENT_FAULTS |= {
    "lost segment": _of_segment((LOST,), _remove),
    "emptied segment": _of_segment((LOST,), _empty),
    "zeroed segment": _of_segment((ROT,), _zero),
    "segment cut between batches": _of_segment((LOST,), _cut_between, is_cut=True),
    "segment cut in a batch": _of_segment((ROT,), _cut_inside, is_cut=True),
}


def _exchanged(drawn: Drawn, name: str) -> Happened | None:
    at = drawn.batch(more=3)
    if at is None:
        return None
    low, middle, high = (drawn.log[at].base, drawn.log[at + 2].base, drawn.log[at + 3].last + 1)

    def change(copy: LogCopy) -> None:
        number = _own_segment(copy, low, middle)
        _own_segment(copy, middle, high)
        one, other = copy.file(number), copy.file(number + 1)
        copy.spoil(number, other)
        copy.spoil(number + 1, one)

    drawn.edits.append((name, change))
    return drawn.of_batch((MISPLACED,), name, at, more=3)


def _of_another_log(drawn: Drawn, name: str) -> Happened | None:
    at = drawn.batch(is_data, more=3)
    if at is None:
        return None
    for number in range(at, at + 4):
        batch = drawn.log[number]
        records = tuple((offset, b"x", b"of another log") for offset, _, _ in batch.records)
        is_commit = None if batch.is_commit is None else not batch.is_commit
        drawn.put(name, number, replace(batch, records=records, is_commit=is_commit))
    return drawn.by_votes((CONFLICT,), name, at, more=3)


def _swapped(drawn: Drawn, name: str) -> Happened | None:
    at = drawn.batch(more=1)
    if at is None:
        return None
    low, high = drawn.log[at].base, drawn.log[at + 1].last + 1

    def change(copy: LogCopy) -> None:
        number = _own_segment(copy, low, high)
        copy.spoil(number, b"".join(reversed(copy.segments[number][1])))

    drawn.edits.append((name, change))
    # The first of them in the file leaves a gap, so that one is misplaced, or the second where what
    # is read at once ends between them. The other one is in order.
    found = drawn.of_batch((MISPLACED, LOST), name, at, more=1)
    return found._replace(base=low, until=low)


SEGMENT_FAULTS |= {
    "exchanged segments": _exchanged,
    "segment of another log": _of_another_log,
    "swapped batches": _swapped,
}


# Ends, leaders and leader epochs: nothing else happens beside these.


def _forked(drawn: Drawn, name: str) -> Happened | None:
    at = drawn.batch()
    if at is None:
        return None
    newer = forked(drawn.rng, drawn.held[name], _number_of(drawn, name, at))
    drawn.held[name] = newer
    high = max(newer[-1].last, drawn.log[-1].last) + 1
    base = drawn.log[at].base

    def led(copy: LogCopy) -> None:
        copy.epochs = epochs_of(newer)
        if copy.high_watermark is not None:
            copy.high_watermark = base  # no leader held more of the log that it was elected with

    drawn.edits.append((name, led))
    return Happened((FORK,), base, high, drawn.others(name), (name,), base, high)


def _number_of(drawn: Drawn, name: str, at: int) -> int:
    return next(n for n, one in enumerate(drawn.held[name]) if one.base == drawn.log[at].base)


def _not_truncated(drawn: Drawn, name: str) -> Happened | None:
    at = drawn.batch()
    if at is None:
        return None
    drawn.held[name] = drawn.held[name][: _number_of(drawn, name, at)]
    base, high = drawn.log[at].base, drawn.log[-1].last + 1
    kept = tuple(one for one in epochs_of(drawn.log) if one[1] < base)
    epochs = (*kept, (drawn.log[-1].epoch + 1, base))
    drawn.edits.append((name, lambda copy: setattr(copy, "epochs", epochs)))
    return Happened((AHEAD,), base, high, drawn.others(name), (name,), base, high)


def _behind(drawn: Drawn, name: str) -> Happened | None:
    at = drawn.batch()
    if at is None or drawn.style == "bare":
        return None
    drawn.held[name] = drawn.held[name][: _number_of(drawn, name, at)]
    base, high = drawn.log[at].base, drawn.log[-1].last + 1
    drawn.edits.append((name, lambda copy: setattr(copy, "high_watermark", base)))
    return Happened((BEHIND,), base, high, (name,), drawn.others(name), base, high)


def _inserted(drawn: Drawn, name: str) -> Happened | None:
    """Put a batch in; of three copies it can be told in which one."""
    at = drawn.batch()
    if at is None or len(drawn.names) == 2 or drawn.cleaned:
        return None
    moved = inserted(drawn.log, at)
    drawn.held[name] = moved
    drawn.edits.append((name, lambda copy: setattr(copy, "epochs", epochs_of(moved))))
    base, high = drawn.log[at].base, drawn.log[-1].last + 1
    kinds = (CONFLICT, LOST, MISPLACED, FORK, ROT, BEHIND, EPOCHS)
    return Happened(kinds, base, high, (name,), drawn.others(name), base, moved[-1].last + 1)


END_FAULTS: dict[str, Fault] = {
    "fork": _forked,
    "not truncated": _not_truncated,
    "behind the high watermark": _behind,
    "inserted batch": _inserted,
}
