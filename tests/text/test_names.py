"""Names of segments and of partitions' folders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.kafka.text.names import (
    FolderState,
    PartitionFolder,
    file_name,
    is_of_partition,
    parse_partition_folder,
    parse_segment_name,
)
from support.logs.strategies import MAX_INT32, MAX_INT64

HASH = "0123456789abcdef0123456789abcdef"
topics = st.text(alphabet="ab.-_9", min_size=1, max_size=20)
partitions = st.integers(0, MAX_INT32)


@given(st.integers(0, MAX_INT64))
def test_a_segments_name_reads_back_as_its_base_offset(base_offset):
    name = file_name(base_offset, ".log")

    assert len(name) == 24
    assert parse_segment_name(name) == base_offset


def test_a_file_is_named_with_20_digits():
    assert file_name(1000, ".log") == "00000000000000001000.log"
    assert file_name(MAX_INT64, ".timeindex") == "09223372036854775807.timeindex"


@pytest.mark.parametrize(
    "name",
    [
        "7.log",
        "0000000000000000007.log",
        "000000000000000000007.log",
        "-0000000000000000007.log",
        "+0000000000000000007.log",
        "0000000000000000000a.log",
        "abc.log",
        ".log",
        "00000000000000000007.log.deleted",
        "00000000000000000007.log.swap",
        "00000000000000000007.index",
        "00000000000000000007",
        "00000000000000000007.log\n",
        "0000000000000000000٣.log",
        "09223372036854775808.log",
        "99999999999999999999.log",
    ],
)
def test_only_20_digits_that_fit_an_int64_name_a_segment(name):
    assert parse_segment_name(name) is None


@given(topics, partitions)
def test_a_folder_is_split_at_its_last_dash(topic, partition):
    parsed = parse_partition_folder(f"{topic}-{partition}")

    assert parsed == PartitionFolder(topic, partition, FolderState.LIVE)


@given(topics, partitions, st.sampled_from(["delete", "stray", "future"]))
def test_a_moved_folder_is_cut_at_its_last_dot_and_then_split(topic, partition, state):
    parsed = parse_partition_folder(f"{topic}-{partition}.{HASH}-{state}")

    assert parsed == PartitionFolder(topic, partition, FolderState(state))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web-log-7", ("web-log", 7, "live")),
        ("a-b-3", ("a-b", 3, "live")),
        ("t-01", ("t", 1, "live")),
        ("t--1", ("t-", 1, "live")),
        ("a.b-delete-0", ("a.b-delete", 0, "live")),
        ("__consumer_offsets-49", ("__consumer_offsets", 49, "live")),
        (f"a.b-3.{HASH}-delete", ("a.b", 3, "delete")),
        ("t-2147483647", ("t", MAX_INT32, "live")),
    ],
)
def test_folders_of_partitions(name, expected):
    assert parse_partition_folder(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "",
        "t",
        "t-",
        "-0",
        "t-x",
        "t-0x",
        "t-1 ",
        "t-1\n",
        "t-٣",
        "t-2147483648",
        "t-99999999999",
        "t-delete",
        f"t.{HASH}-delete",
        f"t-x.{HASH}-delete",
        "t-0.-delete",
        f"t-0.{HASH}-moved",
        "remote-log-index-cache",
    ],
)
def test_folders_of_no_partition(name):
    assert parse_partition_folder(name) is None


@pytest.mark.parametrize(
    ("has_folders", "files", "expected"),
    [
        (False, [], True),
        (False, ["x"], True),
        (True, [], False),
        (True, ["x", f"{0:020d}.log"], True),
        (True, [f"{0:020d}.log.deleted"], True),
        (True, ["partition.metadata"], True),
        (True, [f"{0:020d}.log", "meta.properties"], False),
        (True, ["0.log", "server.log", "kafkaServer-gc.log.0"], False),
    ],
)
def test_a_folder_with_folders_and_no_segments_is_no_partitions(has_folders, files, expected):
    assert is_of_partition(has_folders=has_folders, files=files) == expected
