"""Whether a group that no record tells of may have commits in what was not read."""

import pytest

from kafka_segments.engine.derived.group_offsets import groups_not_known, partitions_not_read
from kafka_segments.errors import UsageError
from kafka_segments.kafka.broker_rules.consumer_groups import (
    OffsetsRead,
    group_partition,
    partitions_by_groups,
    unread_partition,
)
from kafka_segments.kafka.text.names import OFFSETS_TOPIC

ALL = OffsetsRead(frozenset(range(4)), 4)
HALF = OffsetsRead(frozenset({group_partition("here", 4)}), 4)
AWAY = next(f"g{n}" for n in range(99) if group_partition(f"g{n}", 4) not in HALF.read)


def test_a_group_of_a_partition_that_was_not_read_is_not_known() -> None:
    partition = group_partition(AWAY, 4)

    (line,) = groups_not_known("/wh", ["here", AWAY], ["here"], [HALF])

    assert line.startswith(f"group {AWAY}: not known: its partition __consumer_offsets-{partition}")


def test_a_group_that_nothing_tells_of_is_refused_where_all_was_read() -> None:
    with pytest.raises(UsageError, match="/wh has no group hers: it has here"):
        list(groups_not_known("/wh", ["hers"], ["here"], [ALL]))


def test_a_group_is_not_known_where_some_records_cannot_be_read() -> None:
    (line,) = groups_not_known("/wh", ["hers"], ["here", ""], [ALL])

    assert line == "group hers: not known: not all records of __consumer_offsets can be read"


def test_without_metadata_there_are_at_least_as_many_partitions_as_by_default() -> None:
    assert unread_partition("any", [OffsetsRead(frozenset(range(50)))]) is None
    few = OffsetsRead(frozenset(range(3)))
    group = next(f"g{n}" for n in range(99) if group_partition(f"g{n}", 50) > 2)
    assert unread_partition(group, [few]) == (
        "not known: not all partitions of __consumer_offsets were read"
    )


def _log(
    partition: int, start: int = 0, doubt: str | None = None, lost: str | None = None
) -> dict[str, object]:
    return {"partition": partition, "log_start_offset": start, "doubt": doubt, "lost": lost}


@pytest.mark.parametrize(
    ("logs", "count", "told"),
    [
        ([0, 1, 2, 3], 4, []),
        ([0, 2], 4, ["known: __consumer_offsets-1, __consumer_offsets-3: no log was read"]),
        ([], 1, ["known: __consumer_offsets-0: no log was read"]),
        ([], 10, ["__consumer_offsets-7 and 2 more: no log was read"]),
        (range(50), None, []),
        ([0, 1, 2, 3], None, ["4 partitions were read, and no metadata says how many"]),
    ],
)
def test_partitions_that_were_not_read_are_told(
    logs: list[int], count: int | None, told: list[str]
) -> None:
    lines = list(partitions_not_read(OFFSETS_TOPIC, map(_log, logs), count))

    assert len(lines) == len(told)
    assert all(text in line for text, line in zip(told, lines, strict=True))


def test_a_log_in_doubt_and_one_that_lacks_its_beginning_were_not_read_as_a_whole() -> None:
    logs = [_log(0), _log(1, 7), _log(2, doubt="not known: why")]

    first, doubt = partitions_not_read(OFFSETS_TOPIC, logs, 3)
    (doubt_alone,) = partitions_not_read("__share_group_state", logs, 3)

    assert "__consumer_offsets-1: it begins at offset 7, its first segments are missing" in first
    assert doubt == "__consumer_offsets-2: not known: why"
    assert doubt_alone == "__share_group_state-2: not known: why"
    both = list(partitions_not_read(OFFSETS_TOPIC, [_log(0, 7, lost="a segment is missing")], 1))
    assert [line.split(": ")[2].split(",")[0] for line in both] == [
        "it begins at offset 7",
        "a segment is missing",
    ]


def test_of_groups_that_are_asked_for_their_partitions_alone_count() -> None:
    here = [_log(number) for number in HALF.read]

    assert list(partitions_not_read(OFFSETS_TOPIC, here, 4, ["here"])) == []
    (line,) = partitions_not_read(OFFSETS_TOPIC, here, 4, ["here", AWAY])
    assert line.startswith(f"not known: __consumer_offsets-{group_partition(AWAY, 4)}: no log")
    assert list(partitions_not_read(OFFSETS_TOPIC, here, None, ["here"])) == []


def test_where_groups_lie_tells_how_many_partitions_there_are() -> None:
    groups = [f"group {number}" for number in range(12)]
    for count in (1, 2, 7, 50):
        told = [(group_partition(group, count), group) for group in groups]
        assert partitions_by_groups(told, least=max(told)[0] + 1) == count


def test_of_one_partition_among_others_groups_tell_nothing_that_is_wrong() -> None:
    groups = [group for number in range(2000) if group_partition(group := f"g{number}", 50) == 0]

    # 1, 2, 5, 10, 25 and 50 fit.
    assert partitions_by_groups([(0, group) for group in groups], least=1) is None
    assert partitions_by_groups([(0, groups[0])], least=1) is None
    assert partitions_by_groups([], least=1) is None
