"""The text files that a broker keeps: as written, and as corrupt as they come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.errors import CorruptTextError
from kafka_segments.kafka.text import checkpoints
from kafka_segments.kafka.text.checkpoints import EpochStart, MetaProperties, PartitionOffset
from support.logs.strategies import MAX_INT32, MAX_INT64

NAME = checkpoints.RECOVERY_POINT
META = """\
#
#Wed Nov 19 10:00:00 UTC 2025
cluster.id=4L6g3nShT-eMCtK--X86sw
version=1
directory.id=hbR9ZTVoR2yVPwVpNFZLMA
node.id=7
"""

partition_offsets = st.builds(
    PartitionOffset,
    st.text(alphabet="abc.-_1", min_size=1),
    st.integers(0, MAX_INT32),
    st.integers(0, MAX_INT64),
)
epoch_starts = st.builds(EpochStart, st.integers(0, MAX_INT32), st.integers(0, MAX_INT64))


def written(entries, *, between=" "):
    lines = ["0", str(len(entries)), *(between.join(map(str, entry)) for entry in entries)]
    return "".join(f"{line}\n" for line in lines)


@given(st.lists(partition_offsets))
def test_an_offset_checkpoint_reads_back_as_a_broker_writes_it(entries):
    assert checkpoints.parse_offset_checkpoint(NAME, written(entries)) == entries


@given(st.lists(epoch_starts))
def test_leader_epochs_read_back_as_a_broker_writes_them(entries):
    assert checkpoints.parse_leader_epochs(written(entries)) == entries


def test_the_epochs_of_example_e1():
    assert checkpoints.parse_leader_epochs("0\n2\n3 1000\n5 1006\n") == [(3, 1000), (5, 1006)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="0 bytes"),
        pytest.param("0\n", id="only a version"),
        pytest.param("0\n0\n", id="no entries"),
    ],
)
def test_a_checkpoint_without_entries(text):
    assert checkpoints.parse_offset_checkpoint(NAME, text) == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("0\n1\nt \t 0   5\n", id="runs of white space"),
        pytest.param("0\r\n1\r\nt 0 5\r\n", id="carriage returns"),
        pytest.param("0\n1\nt 0 5", id="no last newline"),
        pytest.param("0\n1\nt 0 5 \n", id="white space at a line's end"),
        pytest.param("0\n1\nt 00 +5\n", id="numbers as Java reads them"),
        pytest.param("+0\n01\nt 0 \u0665\n", id="digits of any script"),
    ],
)
def test_what_java_reads_is_read(text):
    assert checkpoints.parse_offset_checkpoint(NAME, text) == [("t", 0, 5)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1\n0\n", "version is '1', 0 expected (line 1)"),
        ("\n", "version is '', 0 expected (line 1)"),
        ("0\nx\n", "'x' is no int32 (line 2)"),
        ("0\n\n", "'' is no int32 (line 2)"),
        ("0\n 1\nt 0 5\n", "' 1' is no int32 (line 2)"),
        ("0\n2147483648\n", "'2147483648' is no int32 (line 2)"),
        ("0\n2\nt 0 5\n", "1 entries, line 2 says 2"),
        ("0\n1\nt 0 5\nt 1 5\n", "2 entries, line 2 says 1"),
        ("0\n-1\n", "0 entries, line 2 says -1"),
        ("0\n1\nt 0\n", "2 fields, 3 expected (line 3)"),
        ("0\n2\nt 0 5\nt 1 5 6\n", "4 fields, 3 expected (line 4)"),
        ("0\n1\n t 0 5\n", "4 fields, 3 expected (line 3)"),
        ("0\n1\n\nt 0 5\n", "1 fields, 3 expected (line 3)"),
        ("0\n1\nt x 5\n", "'x' is no int32 (line 3)"),
        ("0\n1\nt 1_0 5\n", "'1_0' is no int32 (line 3)"),
        ("0\n1\nt 2147483648 5\n", "'2147483648' is no int32 (line 3)"),
        ("0\n2\nt 0 5\nt 1 five\n", "'five' is no int64 (line 4)"),
        ("0\n1\nt 0 9223372036854775808\n", "'9223372036854775808' is no int64 (line 3)"),
        ("\0\0\0\0", "version is 4 zero bytes, 0 expected (line 1)"),
    ],
)
def test_a_corrupt_offset_checkpoint_says_where(text, reason):
    with pytest.raises(CorruptTextError) as raised:
        checkpoints.parse_offset_checkpoint(NAME, text)

    assert str(raised.value) == f"recovery-point-offset-checkpoint: {reason}"


def test_a_number_of_any_length_is_refused_by_name():
    with pytest.raises(CorruptTextError, match=r"9' is no int64 \(line 3\)"):
        checkpoints.parse_offset_checkpoint(NAME, f"0\n1\nt 0 {'9' * 5000}\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0\n1\n3 1000 7\n", "3 fields, 2 expected (line 3)"),
        ("0\n1\n2147483648 1000\n", "'2147483648' is no int32 (line 3)"),
        ("0\n1\n3 x\n", "'x' is no int64 (line 3)"),
    ],
)
def test_corrupt_leader_epochs_say_where(text, reason):
    with pytest.raises(CorruptTextError) as raised:
        checkpoints.parse_leader_epochs(text)

    assert str(raised.value) == f"leader-epoch-checkpoint: {reason}"


def test_partition_metadata_holds_the_topic_id():
    text = "version: 0\ntopic_id: MWJ6FHTfRYy67jzwZdeqSQ"

    assert checkpoints.parse_partition_metadata(text) == "MWJ6FHTfRYy67jzwZdeqSQ"


@pytest.mark.parametrize(
    ("text", "line", "exception"),
    [
        ("", 1, "NullPointerException"),
        ("version: 0", 2, "NullPointerException"),
        ("\0" * 43, 1, "IOException"),
        ("topic_id: MWJ6FHTfRYy67jzwZdeqSQ", 1, "IOException"),
        ("version: -1\ntopic_id: MWJ6FHTfRYy67jzwZdeqSQ", 1, "IOException"),
        ("version: 0\ntopic_id: ", 2, "IOException"),
        ("version: 0\ntopic_id: MWJ6FHTfRYy67jzw", 2, "IllegalArgumentException"),
        ("version: 0\ntopic_id: MWJ6FHTfRY\x0167jzwZdeqSQ", 2, "IllegalArgumentException"),
        ("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", 2, "IOException"),
        ("version=0\ntopic_id=MWJ6FHTfRYy67jzwZdeqSQ", 1, "IOException"),
    ],
)
def test_partition_metadata_without_a_topic_id_is_corrupt(text, line, exception):
    with pytest.raises(CorruptTextError) as raised:
        checkpoints.parse_partition_metadata(text)

    assert (raised.value.line, raised.value.exception) == (line, exception)


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\r\ntopic_id: MWJ6FHTfRYy67jzwZdeqSQ\r\nowner: me\r\n",
        "version: 0\ntopic_id: MWJ6FHTfRYy67jzwZdeqSQ==",
        "x 0\ny MWJ6FHTfRYy67jzwZdeqSR",
    ],
)
def test_partition_metadata_that_kafka_reads_is_read(text):
    assert checkpoints.parse_partition_metadata(text) == "MWJ6FHTfRYy67jzwZdeqSQ"


@pytest.mark.parametrize(
    ("text", "line", "exception"),
    [
        ("\0" * 8, 1, "IOException"),
        ("0\n", None, None),
        ("0\n-1\n", 2, "IllegalArgumentException"),
        ("0\n999999999\n", 2, "OutOfMemoryError"),
        ("0\n2\n0 1\n", 2, "IOException"),
        ("0\n9\n0\x01 1\n", 3, "NumberFormatException"),
        ("0\n2\n0 1\n-1 30\n", 4, "IllegalArgumentException"),
        ("0\n1\n0 -30\n", 3, "IllegalArgumentException"),
        ("0\n2\n0 30\x1c1 40\n", 3, "IOException"),
    ],
)
def test_what_kafka_throws_at_leader_epochs(text, line, exception):
    try:
        checkpoints.parse_leader_epochs(text)
        found = None, None
    except CorruptTextError as error:
        found = error.line, error.exception

    assert found == (line, exception)


def test_meta_properties_of_version_1():
    assert checkpoints.parse_meta_properties(META) == MetaProperties(
        version=1,
        cluster_id="4L6g3nShT-eMCtK--X86sw",
        node_id=7,
        directory_id="hbR9ZTVoR2yVPwVpNFZLMA",
    )


def test_meta_properties_of_version_0_name_the_broker():
    text = "version=0\nbroker.id=3\ncluster.id=abc\n"

    assert checkpoints.parse_meta_properties(text) == MetaProperties(0, "abc", 3, None)


def test_meta_properties_may_be_silent():
    assert checkpoints.parse_meta_properties("") == MetaProperties(None, None, None, None)


def test_meta_properties_are_javas():
    text = "version = 1\n! a comment\nnode.id : 7\ncluster.id a\\\n   b\\u0063\n"

    assert checkpoints.parse_meta_properties(text) == MetaProperties(1, "abc", 7, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version=one\n", "'one' is no int32 (version)"),
        ("node.id=\n", "'' is no int32 (node.id)"),
        ("broker.id=2147483648\n", "'2147483648' is no int32 (node.id)"),
        ("cluster.id=\\u12\n", "Invalid \\u escape sequence: \\u12"),
    ],
)
def test_corrupt_meta_properties_say_what_is_wrong(text, reason):
    with pytest.raises(CorruptTextError) as raised:
        checkpoints.parse_meta_properties(text)

    assert str(raised.value) == f"meta.properties: {reason}"
