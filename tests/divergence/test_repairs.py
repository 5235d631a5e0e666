"""Whole logs made of drawn damaged copies: every batch is back, and no two histories are mixed."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_segments.files.storage.durable_files import temporary_name
from kafka_segments.verbs.copies.divergence.decide.compaction import Compaction
from kafka_segments.verbs.copies.divergence.decide.logs import compare_log
from kafka_segments.verbs.copies.divergence.log_reading.log_files import CopyFiles, WholeSegment
from kafka_segments.verbs.copies.divergence.repair.decide.repairs import Repair, plan_repair
from kafka_segments.verbs.copies.divergence.repair.repaired_log import NewLog, write_log
from support.logs.log_copies import (
    CLOCK_MS,
    HOLES,
    Batch,
    LogCopy,
    compacted,
    drawn_log,
    drawn_transactions,
    epochs_of,
    flipped,
    forked,
    inserted,
    read_log,
    rolled,
    with_hole,
    without,
    write_copy,
)

ROUNDS = 6


def planned(folder: Path, copies: dict[str, LogCopy], history: str | None = None) -> Repair:
    """Write the copies, and plan the repair."""
    read = read_log(copies)
    rows = compare_log(read.copies, read.ranges, read.files, read.keys)
    files, batches = CopyFiles(), {}
    for name, copy in copies.items():
        write_copy(folder / name, copy)
        bases = [base for base, _ in copy.segments]
        batches[name] = [
            piece
            for base, following in zip(bases, [*bases[1:], None], strict=True)
            for piece in files.batches("", _segment(folder / name, base, following).as_piece())
        ]
    cleaned = Compaction(read.copies, read.keys).end()
    return plan_repair(read.copies, batches, rows, cleaned, history)


def _segment(folder: Path, base: int, following: int | None) -> WholeSegment:
    path = folder / f"{base:020d}.log"
    return WholeSegment(str(path), base, following, path.stat().st_size)


def written(folder: Path, plan: Repair, rolls: Sequence[int]) -> bytes:
    """Write the log; give the bytes of its segments."""
    write_log(NewLog(folder / "t-0", plan.taken, rolls, "A" * 22, CLOCK_MS))
    return b"".join(path.read_bytes() for path in sorted((folder / "t-0").glob("*.log")))


def as_bytes(batches: list[Batch]) -> bytes:
    """Give the bytes of a log."""
    return b"".join(batch.written() for batch in batches)


def _hurt(rng: random.Random, log: list[Batch], numbers: Sequence[int]) -> LogCopy:
    """Spoil some batches of a copy in one of the ways of a disk."""
    copy = rolled(rng, log)
    for index, (_, batches) in enumerate(copy.segments):
        parts = list(batches)
        for at, part in enumerate(parts):
            if any(log[number].written() == part for number in numbers):
                parts[at] = rng.choice(
                    [flipped(part, rng.randrange(12, len(part))), bytes(len(part))]
                )
        if parts != batches:
            copy.spoil(index, b"".join(parts))
    return copy


def _rotten(rng: random.Random, log: list[Batch], numbers: Sequence[int]) -> LogCopy:
    """Flip a bit in each of some batches, which checksums cover."""
    copy = rolled(rng, log)
    written = {log[number].written() for number in numbers}
    for index, (_, parts) in enumerate(copy.segments):
        spoiled = [flipped(part, len(part) - 1) if part in written else part for part in parts]
        copy.spoil(index, b"".join(spoiled))
    return copy


def _cut(rng: random.Random, log: list[Batch], at: int) -> LogCopy:
    """Truncate a copy at a batch; its checkpoint may be older."""
    copy = rolled(rng, log[:at])
    copy.epochs = rng.choice([(), epochs_of(log[:at])])
    return copy


def _in_conflict(log: list[Batch], at: int) -> list[Batch]:
    """Write other records into a batch of the same leader."""
    records = tuple((offset, b"x", b"y") for offset, _, _ in log[at].records)
    return [*log[:at], replace(log[at], records=records), *log[at + 1 :]]


def test_three_copies_damaged_at_different_places_make_the_log_as_it_was(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(f"{seed} repairs")
    for number in range(ROUNDS):
        log = drawn_log(rng)
        places = rng.sample(range(59), 10)
        copies = {
            "a": _hurt(rng, log, places[:5]),
            "b": _hurt(rng, log, places[5:]),
            "c": _cut(rng, log, rng.randint(1, 50)),
        }
        folder = tmp_path / str(number)
        plan = planned(folder, copies)

        assert (plan.refused, plan.missing) == ("", ())
        rolls = [base for base, _ in copies[plan.history].segments]
        assert written(folder, plan, rolls) == as_bytes(log)
        assert [int(path.stem) for path in sorted((folder / "t-0").glob("*.log"))] == rolls
        manifest = json.loads((folder / "t-0.json").read_text())
        assert {row["copy"] for row in manifest["ranges"]} >= {"a", "b"}
        names = {file["name"] for file in manifest["files"]}
        assert names == {path.name for path in (folder / "t-0").iterdir()}
        epochs = "".join(f"{epoch} {start}\n" for epoch, start in epochs_of(log))
        assert (folder / "t-0" / "leader-epoch-checkpoint").read_text() == (
            f"0\n{len(epochs_of(log))}\n{epochs}"
        )


@pytest.mark.parametrize("what", HOLES)
def test_no_hole_of_a_copy_gets_into_the_log(seed: int, what: str, tmp_path: Path) -> None:
    rng = random.Random(f"{seed} {what} hole")
    for number in range(ROUNDS):
        log = drawn_transactions(rng) if what == "marker" else drawn_log(rng)
        hole = with_hole(rng, log, what)
        elsewhere = [
            at for at, one in enumerate(log) if not hole.base <= one.base < hole.until and at < 59
        ]
        copies = {
            "a": hole.copy,
            "b": _rotten(rng, log, rng.sample(elsewhere, 2)),
            "c": _rotten(rng, log, rng.sample(elsewhere, 2)) if number % 2 else hole.copy,
        }
        folder = tmp_path / str(number)
        plan = planned(folder, copies)

        if number % 2:
            both = {at for at in elsewhere if _is_rotten(copies, log[at])}
            assert plan.missing == tuple(_joined(log, both))
        else:
            assert plan.missing == ()
            assert written(folder, plan, ()) == as_bytes(log)


def _is_rotten(copies: dict[str, LogCopy], batch: Batch) -> bool:
    """Tell whether no copy holds a batch as it was written."""
    files = [copy.file(index) for copy in copies.values() for index in range(len(copy.segments))]
    return not any(batch.written() in data for data in files)


def _joined(log: list[Batch], numbers: set[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for at in sorted(numbers):
        low, high = log[at].base, log[at].last + 1
        if found and found[-1][1] == low:
            low = found.pop()[0]
        found.append((low, high))
    return found


def test_a_copy_into_which_a_batch_was_inserted_is_no_history(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{seed} inserted")
    for number in range(ROUNDS):
        log = drawn_log(rng)
        wrong = rolled(rng, inserted(log, rng.randint(1, 50)))
        folder = tmp_path / str(number)
        plan = planned(folder, {"a": wrong, "b": rolled(rng, log), "c": rolled(rng, log)})

        assert (plan.refused, plan.missing) == ("", ())
        assert plan.history != "a"
        assert written(folder, plan, ()) == as_bytes(log)


def test_a_batch_that_is_bad_in_every_copy_is_missing(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{seed} missing")
    log = drawn_log(rng)
    plan = planned(tmp_path, {"a": _hurt(rng, log, [7, 20]), "b": _hurt(rng, log, [9, 20])})

    assert plan.missing == ((log[20].base, log[20].last + 1),)
    assert written(tmp_path, plan, ()) == as_bytes([*log[:20], *log[21:]])


def test_what_a_killed_repair_left_goes_with_the_next(seed: int, tmp_path: Path) -> None:
    log = drawn_log(random.Random(f"{seed} killed"))
    plan = planned(tmp_path / "copies", {name: rolled(random.Random(1), log) for name in "ab"})
    out = tmp_path / "out"
    (out / "t-0.unfinished").mkdir(parents=True)
    (out / "t-0.unfinished" / "half").touch()
    Path(temporary_name(str(out / "t-0.json"))).touch()

    assert written(out, plan, ()) == as_bytes(log)
    assert sorted(path.name for path in out.iterdir()) == ["t-0", "t-0.json"]


def test_what_is_bad_in_every_copy_at_an_end_of_the_log_is_missing(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(f"{seed} missing at an end")
    for number in range(ROUNDS):
        log = drawn_log(rng)
        first, last = rng.randint(1, 3), rng.randint(56, 58)
        bad = [*range(first), *range(last + 1, 60)]
        folder = tmp_path / str(number)
        copies = {"a": _rotten(rng, log, bad), "b": _rotten(rng, log, bad)}
        copies["c"] = rolled(rng, log[10:50])
        plan = planned(folder, copies)

        front, (start, until) = plan.missing
        assert front == (log[0].base, log[first].base)
        # How far the bad batches at the end went, the name of a segment alone can tell.
        assert start == log[last].last + 1
        assert start <= until <= log[-1].last + 1
        assert written(folder, plan, ()) == as_bytes(log[first : last + 1])


def test_what_every_copy_lacks_below_the_high_watermark_is_missing(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(f"{seed} no end")
    log = drawn_log(rng)
    copies = {"a": _rotten(rng, log[:50], [7]), "b": rolled(rng, log[:45])}
    copies["b"].high_watermark = log[55].base
    plan = planned(tmp_path, copies)

    assert plan.missing == ((log[50].base, log[55].base),)
    assert written(tmp_path, plan, ()) == as_bytes([*log[:50]])


def test_what_retention_took_from_the_copies_is_not_missing(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{seed} retained")
    log = drawn_log(rng)
    new = LogCopy([(0, [])])  # of a replica that fetches from the others' log start on
    plan = planned(tmp_path, {"a": rolled(rng, log[9:]), "b": rolled(rng, log[20:]), "c": new})

    assert (plan.missing, plan.taken[0].from_offset) == ((), log[9].base)


def test_what_the_copy_of_a_compacted_log_does_not_hold_is_not_missing(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(f"{seed} compacted away")
    log = drawn_log(rng, keys=1)
    cleaned = rolled(rng, compacted(log, log[40].base), base=log[0].base)
    cleaned.cleaner_offset = log[40].base
    plan = planned(tmp_path, {"a": _hurt(rng, log, [0]), "b": cleaned})

    assert (plan.refused, plan.missing) == ("", ())


@pytest.mark.parametrize("history", [None, "a", "b"])
def test_a_fork_is_repaired_from_one_side_alone(
    seed: int, tmp_path: Path, history: str | None
) -> None:
    rng = random.Random(f"{seed} {history}")
    for number in range(ROUNDS):
        log = drawn_log(rng)
        at = rng.randint(20, 58)
        newer = forked(rng, log, at)
        copies = {"a": _hurt(rng, newer, [3, 12]), "b": _hurt(rng, log, [5]), "c": rolled(rng, log)}
        folder = tmp_path / str(number)
        plan = planned(folder, copies, history)

        assert plan.history == (history or "a")
        assert plan.missing == ()
        assert written(folder, plan, ()) == as_bytes(log if history == "b" else newer)


def test_what_the_cleaner_was_at_comes_from_one_copy(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{seed} compacted")
    log = drawn_log(rng, keys=300)
    clean = compacted(log, log[40].base)
    cleaned = rolled(rng, clean, base=log[0].base)
    cleaned.cleaner_offset = log[40].base
    hurt = _hurt(rng, log, [5, 50])

    plan = planned(tmp_path / "1", {"a": hurt, "b": cleaned})

    assert written(tmp_path / "1", plan, ()) == as_bytes(clean)
    assert plan.taken[0].copy == "b"
    cleaned.spoil(0, flipped(cleaned.file(0), 70))
    plan = planned(tmp_path / "2", {"a": hurt, "b": cleaned})
    assert "bring deleted keys back" in plan.refused


def test_sound_copies_of_one_epoch_that_differ_are_refused(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{seed} conflict")
    log = drawn_log(rng)
    other = rolled(rng, _in_conflict(log, 9))

    plan = planned(tmp_path, {"a": rolled(rng, log), "b": other})

    assert "which copy is right" in plan.refused
    assert plan.taken == ()


@pytest.mark.parametrize("history", ["a", "b"])
def test_of_copies_that_are_alike_the_one_whose_history_counts_is_taken_first(
    seed: int, history: str, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    log = drawn_log(rng)
    copies = {"a": _rotten(rng, log, [9]), "b": _rotten(rng, log, [20])}

    plan = planned(tmp_path, copies, history)

    assert plan.taken[0].copy == history


def test_what_one_copy_lost_behind_a_fork_comes_from_another_of_its_side(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(f"{seed} lost behind a fork")
    log = drawn_log(rng)
    newer = forked(rng, log, 40, more=12)
    copies = {
        "a": rolled(rng, log),
        "b": _hurt(rng, newer, [40, 50]),
        "c": without(rng, newer, 44, 47),
    }
    plan = planned(tmp_path, copies)

    assert (plan.refused, plan.missing) == ("", ())
    assert written(tmp_path, plan, ()) == as_bytes(newer)


def test_copies_in_conflict_behind_a_fork_are_refused_on_the_historys_side_alone(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(f"{seed} conflict behind a fork")
    log = drawn_log(rng)
    newer = forked(rng, log, 40, more=12)
    older, clash = rolled(rng, log), rolled(rng, _in_conflict(newer, 45))
    copies = {"a": older, "b": rolled(rng, newer), "c": clash}

    plan = planned(tmp_path / "newer", copies)
    assert "which copy is right" in plan.refused

    plan = planned(tmp_path / "older", copies, "a")
    assert (plan.refused, plan.missing) == ("", ())
    assert written(tmp_path / "older", plan, ()) == as_bytes(log)


def test_what_is_damaged_on_another_side_of_a_fork_is_not_missing(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(f"{seed} hurt on another side")
    log = drawn_log(rng)
    newer = forked(rng, log, 40, more=1)
    plan = planned(tmp_path, {"a": _hurt(rng, log, [59, 58]), "b": rolled(rng, newer)})

    assert plan.missing == ()
    assert written(tmp_path, plan, ()) == as_bytes(newer)


def test_a_segment_that_has_changed_since_is_no_part_of_a_log(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{seed} changed")
    log = drawn_log(rng)
    plan = planned(tmp_path, {"a": rolled(rng, log), "b": rolled(rng, log[:50])})
    path = Path(plan.taken[0].batches[-1].where[0].path)
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(OSError, match="it has changed since it was read"):
        written(tmp_path, plan, ())
    assert not (tmp_path / "t-0").exists()
