"""Logs and mirrors with offsets of their own, against plain loops over what was done to them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from kafka_segments.verbs.copies.divergence.mirror.decide.kinds import MirrorKind
from kafka_segments.verbs.copies.divergence.mirror.decide.matching import matched
from kafka_segments.verbs.copies.divergence.mirror.decide.mirrored_log import MirroredLog
from kafka_segments.verbs.copies.divergence.mirror.decide.mirrors import (
    MirrorRange,
    OffsetSync,
    compare_mirror,
    wrong_syncs,
)

ROUNDS = 200


@dataclass
class Record:
    """A record; ``content`` tells it from others, ``timestamp`` None is the broker's."""

    offset: int
    content: int
    key: int = 0
    is_tombstone: bool = False
    is_aborted: bool = False
    timestamp: int | None = 5


def log_of(records: Sequence[Record], *, start: int = 0, compacted_until: int = -1) -> MirroredLog:
    end = max((record.offset + 1 for record in records), default=start)
    lacks = sorted(set(range(start, end)) - {record.offset for record in records})
    return MirroredLog(
        start,
        end,
        np.array([record.offset for record in records], dtype=np.int64),
        np.array([record.content for record in records], dtype=np.uint64),
        np.array([record.key for record in records], dtype=np.uint64),
        np.array([record.is_tombstone for record in records], dtype=np.bool_),
        np.array([record.is_aborted for record in records], dtype=np.bool_),
        np.array([record.timestamp or 0 for record in records], dtype=np.int64),
        np.array([record.timestamp is not None for record in records], dtype=np.bool_),
        np.array(lacks, dtype=np.int64),
        compacted_until=compacted_until,
    )


def spread(rng: random.Random, contents: Sequence[int], start: int = 0) -> list[Record]:
    """Give contents offsets with gaps, as of markers."""
    offset, found = start, []
    for content in contents:
        offset += rng.choice([0, 0, 0, 1, 3])
        found.append(Record(offset, content))
        offset += 1
    return found


def longest_common(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the most that both have in one order, by the plain table."""
    row = [0] * (len(other) + 1)
    for a in one:
        before, row = row, [0]
        for at, b in enumerate(other):
            row.append(before[at] + 1 if a == b else max(before[at + 1], row[at]))
    return row[-1]


def kinds_of(rows: Sequence[MirrorRange], log: Sequence[Record], *, is_mirror: bool) -> list[str]:
    """Give the kind of each record, and check that it is in one row alone."""
    found = []
    for record in log:
        kinds = [
            row.kind
            for row in rows
            if (row.mirror_from if is_mirror else row.from_offset)
            <= record.offset
            < (row.mirror_until if is_mirror else row.until_offset)
        ]
        assert len(kinds) == 1, (record, rows)
        found.append(kinds[0])
    return found


def test_as_many_records_as_possible_are_matched_in_order(seed: int) -> None:
    rng = random.Random(f"{seed} matched")
    for _ in range(ROUNDS):
        source = rng.sample(range(1, 60), rng.randint(0, 40))
        mirror = [one for one in source if rng.random() < 0.8]
        for _ in range(rng.randint(0, 3)):
            at = rng.randint(0, len(mirror))
            mirror = mirror[at:] + mirror[:at]
        here, there = matched(np.array(source, dtype=np.uint64), np.array(mirror, dtype=np.uint64))

        assert [source[at] for at in here] == [mirror[at] for at in there]
        assert (np.diff(here) > 0).all()
        assert (np.diff(there) > 0).all()
        assert len(here) == longest_common(source, mirror)


def test_equal_records_are_matched_in_order_too(seed: int) -> None:
    rng = random.Random(f"{seed} equal")
    for _ in range(ROUNDS):
        source = [rng.randint(1, 4) for _ in range(rng.randint(0, 30))]
        mirror = [rng.randint(1, 4) for _ in range(rng.randint(0, 30))]
        here, there = matched(np.array(source, dtype=np.uint64), np.array(mirror, dtype=np.uint64))

        assert [source[at] for at in here] == [mirror[at] for at in there]
        assert (np.diff(here) > 0).all()
        assert (np.diff(there) > 0).all()


def test_what_was_done_to_a_mirror_is_told_record_by_record(seed: int) -> None:
    rng = random.Random(f"{seed} mirrors")
    for _ in range(ROUNDS):
        contents = rng.sample(range(1, 10_000), rng.randint(20, 60))
        middle = range(2, len(contents) - 8)  # the ends stay
        done = dict.fromkeys(contents, MirrorKind.MIRRORED)
        copied: list[tuple[int, str]] = []
        missing = set(rng.sample(middle, rng.randint(0, 4)))
        doubled = set(rng.sample(middle, rng.randint(0, 3))) - missing
        foreign = set(rng.sample(middle, rng.randint(0, 3)))
        late = contents[-3]  # goes to a place far in front of its own
        for at, content in enumerate(contents):
            if at == 1 and late % 2:
                done[late] = MirrorKind.REORDERED
                copied.append((late, MirrorKind.REORDERED))
            if at in foreign:
                copied.append((20_000 + at, MirrorKind.EXTRA))
            if at in missing:
                done[content] = MirrorKind.MISSING
            elif done[content] != MirrorKind.REORDERED:
                copied.append((content, MirrorKind.MIRRORED))
            if at in doubled:
                copied.append((content, MirrorKind.DUPLICATED))
        ahead = rng.randint(0, 4)
        source = spread(rng, [*contents, *range(30_000, 30_000 + ahead)], start=rng.randint(0, 9))
        mirror = spread(rng, [content for content, _ in copied])

        rows = compare_mirror(log_of(source), log_of(mirror))

        told = kinds_of(rows, source, is_mirror=False)
        assert told == [*(done[content] for content in contents), *["behind"] * ahead]
        assert kinds_of(rows, mirror, is_mirror=True) == [kind for _, kind in copied]
        assert {row.kind for row in rows if row.is_finding} == {
            kind
            for kind in ("missing", "extra", "duplicated", "reordered")
            if kind in [*done.values(), *(kind for _, kind in copied)]
        }
        by_offset = {record.offset: record.content for record in mirror}
        for row in rows:
            if row.kind == MirrorKind.MIRRORED:
                pairs = [
                    [record.content for record in log if low <= record.offset < high]
                    for log, low, high in (
                        (source, row.from_offset, row.until_offset),
                        (mirror, row.mirror_from, row.mirror_until),
                    )
                ]
                assert pairs[0] == pairs[1]
                assert len(pairs[0]) == row.records
        syncs = [
            OffsetSync(record.offset, other)
            for record in rng.sample(source, 9)
            for other in rng.sample(sorted(by_offset), 3)
        ]
        contents_at = {record.offset: record.content for record in source}
        assert wrong_syncs(log_of(source), log_of(mirror), syncs) == [
            sync for sync in syncs if contents_at[sync.source] != by_offset[sync.mirror]
        ]


def test_log_starts_explain_what_lies_in_front_of_the_first_match() -> None:
    source = [Record(offset, offset) for offset in range(10, 20)]
    mirror = [Record(offset - 5, offset) for offset in range(13, 20)]

    rows = compare_mirror(log_of(source, start=10), log_of(mirror, start=8))
    assert [row[:6] for row in rows] == [
        ("later start", False, 10, 13, 8, 8),
        ("mirrored", False, 13, 20, 8, 15),
    ]
    assert compare_mirror(log_of(source, start=10), log_of(mirror))[0].kind == "missing"
    rows = compare_mirror(log_of(mirror, start=8), log_of(source))
    assert [row[:6] for row in rows] == [
        ("later start", False, 8, 8, 10, 13),
        ("mirrored", False, 8, 15, 13, 20),
    ]
    assert compare_mirror(log_of(mirror), log_of(source))[0].kind == "extra"


def test_a_mirror_without_records_is_behind_and_one_with_others_has_nothing_in_common() -> None:
    source = log_of([Record(offset, offset + 1) for offset in range(3)])

    assert [row.kind for row in compare_mirror(source, log_of([]))] == ["behind"]
    other = log_of([Record(offset, offset + 9) for offset in range(3)])
    rows = compare_mirror(source, other)
    assert [(row.kind, row.is_finding) for row in rows] == [("missing", True), ("extra", True)]
    assert compare_mirror(log_of([]), log_of([])) == []


@pytest.mark.parametrize("is_compacted", [True, False])
def test_a_later_record_of_the_key_explains_what_compaction_took(*, is_compacted: bool) -> None:
    records = [
        Record(0, 1, key=7),
        Record(1, 2, key=8),
        Record(2, 3, key=9, is_tombstone=True),
        Record(3, 4, key=7),
        Record(4, 5),
        Record(5, 6, key=6),
    ]
    left = [record for record in records if record.offset not in (0, 2, 4)]
    until = 5 if is_compacted else -1
    expected = "compaction" if is_compacted else "missing"

    rows = compare_mirror(log_of(records), log_of(left, compacted_until=until))
    assert kinds_of(rows, records, is_mirror=False) == [
        *(expected, "mirrored", expected, "mirrored", expected, "mirrored")
    ]
    rows = compare_mirror(log_of(left, compacted_until=until), log_of(records))
    expected = "compaction" if is_compacted else "extra"
    assert kinds_of(rows, records, is_mirror=True)[:3] == [expected, "mirrored", expected]
    gone = [record for record in records if record.offset != 1]  # no later one of its key
    rows = compare_mirror(log_of(records), log_of(gone, compacted_until=until))
    assert kinds_of(rows, records, is_mirror=False)[1] == "missing"


def test_compaction_takes_nothing_behind_where_it_ended() -> None:
    records = [Record(offset, offset + 1, key=7) for offset in range(6)]
    left = [record for record in records if record.offset not in (1, 3)]

    rows = compare_mirror(log_of(records), log_of(left, compacted_until=3))
    assert kinds_of(rows, records, is_mirror=False)[:4] == [
        *("mirrored", "compaction", "mirrored", "missing")
    ]


def test_what_compaction_takes_leaves_its_offset_free() -> None:
    records = [Record(offset, offset + 1, key=7) for offset in range(6)]
    kept = [record for record in records if record.offset not in (1, 3)]
    moved = [replace(record, offset=at) for at, record in enumerate(kept)]

    rows = compare_mirror(log_of(records), log_of(moved, compacted_until=4))
    assert kinds_of(rows, records, is_mirror=False)[:4] == ["mirrored", "missing"] * 2


def test_records_of_aborted_transactions_need_no_match_and_can_have_one() -> None:
    records = [Record(0, 1), Record(1, 2, is_aborted=True), Record(3, 3)]
    committed = [record for record in records if not record.is_aborted]

    rows = compare_mirror(log_of(records), log_of(committed))
    assert [row.kind for row in rows] == ["mirrored", "aborted", "mirrored"]
    assert not any(row.is_finding for row in rows)
    assert [row.kind for row in compare_mirror(log_of(records), log_of(records))] == ["mirrored"]


def test_timestamps_of_producers_that_differ_are_told_record_by_record(seed: int) -> None:
    rng = random.Random(f"{seed} timestamps")
    for _ in range(ROUNDS):
        contents = [rng.randint(1, 9) for _ in range(rng.randint(1, 40))]  # many are equal
        source = spread(rng, contents)
        for number, record in enumerate(source):
            record.timestamp = 1_000 * number
        mirror = [replace(record, offset=record.offset + 7) for record in source]
        changed = rng.sample(range(len(source)), rng.choice([0, 1, 3, len(source)]) % len(source))
        for at in changed:
            mirror[at].timestamp = 1_000 * at + 1
        rows = compare_mirror(log_of(source), log_of(mirror))

        told = kinds_of(rows, source, is_mirror=False)
        assert told == kinds_of(rows, mirror, is_mirror=True)
        assert [at for at, kind in enumerate(told) if kind == MirrorKind.TIMESTAMPS] == sorted(
            changed
        )
        assert {row.kind for row in rows if row.is_finding} <= {MirrorKind.TIMESTAMPS}
        by_broker = [replace(record, timestamp=None) for record in mirror]
        for one, other in ((source, by_broker), (by_broker, source)):
            rows = compare_mirror(log_of(one), log_of(other))
            assert {row.kind for row in rows} == {MirrorKind.MIRRORED}


def test_of_equal_records_the_one_is_missing_whose_timestamp_is_missing() -> None:
    source = [Record(at, 1, timestamp=at) for at in range(6)]
    mirror = [record for record in source if record.offset != 2]
    rows = compare_mirror(log_of(source), log_of(mirror))

    assert [(row.kind, row.from_offset, row.until_offset) for row in rows] == [
        ("mirrored", 0, 2),
        ("missing", 2, 3),
        ("mirrored", 3, 6),
    ]


def test_a_late_record_does_not_hide_that_all_others_have_other_timestamps() -> None:
    source = [Record(at, at + 1, timestamp=at) for at in range(20)]
    mirror = [replace(record, timestamp=record.offset + 100) for record in source]
    mirror[19] = Record(19, 1, timestamp=0)  # what the source has first, as it was there
    rows = compare_mirror(log_of(source), log_of(mirror))

    told = kinds_of(rows, source, is_mirror=False)
    assert told == [*["other timestamps"] * 19, "behind"]
