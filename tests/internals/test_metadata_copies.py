"""What of a metadata log is not understood, not committed or contradicted is told, and left out."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.derived.metadata_in_tables import metadata_problems
from kafka_segments.engine.tables.catalog import METADATA_CONFIGS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.metadata.quorum import parse_quorum_state
from kafka_segments.verbs.find.internals.run import InternalsOptions, run_internals
from support.logs import metadata_logs as made

pytestmark = pytest.mark.spark
KNOWN = [made.topic("t", 1), made.config("t", "retention.ms", "9")]
CHANGE = made.config("t", "retention.ms", "1")
OTHER_CHANGE = made.config("t", "retention.ms", "2")
UNKNOWN_TYPE = bytes([1, 99, 0]) + b"\x00"
NEWER_VERSION = bytes([1, 2, 9]) + b"\x00"
NEWER_FRAME = bytes([2, 4, 0]) + b"x"
QUORUM = (
    '{"leaderId":1,"leaderEpoch":1,"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}],'
    '"data_version":0}'
)


def copy(folder: Path, node: int, *batches: bytes, quorum: str = QUORUM, more: str = "") -> Path:
    files = {f"{0:020d}.log": b"".join(batches), "quorum-state": quorum.encode()}
    if more:
        files["leader-epoch-checkpoint"] = more.encode()
    return made.log_dir(folder / f"b{node}", files, node=node)


def read(spark: SparkSession, folder: Path) -> tuple[str | None, list[tuple[int | None, str]]]:
    """Read all copies; give the value that retention.ms has in the end, and the problems."""
    sources = tuple(sorted(str(path) for path in folder.iterdir() if path.name.startswith("b")))
    warehouse = str(folder / "wh")
    with ExitStack() as caches:
        reading = run_internals(
            Warehouse(spark, warehouse), InternalsOptions(Origin(sources)), caches
        )
    problems = metadata_problems(warehouse)
    assert len(reading.problems) == len(problems)
    held = Warehouse(spark, warehouse).read(METADATA_CONFIGS).where("until_offset IS NULL")
    values = [row["value"] for row in held.collect()]
    return (values or [None])[0], [(one.at_offset, one.problem) for one in problems]


@pytest.mark.slow
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("record", "why"),
    [
        (UNKNOWN_TYPE, "is of type 99, which is unknown"),
        pytest.param(NEWER_VERSION, "TopicRecord", marks=pytest.mark.long),
        pytest.param(NEWER_FRAME, "the frame's version is 2", marks=pytest.mark.long),
    ],
)
def test_a_history_ends_before_a_record_that_is_not_understood(
    spark: SparkSession, tmp_path: Path, record: bytes, why: str
) -> None:
    copy(tmp_path, 1, made.log_bytes([*KNOWN, record, CHANGE]))

    value, ((offset, problem),) = read(spark, tmp_path)

    assert (value, offset) == ("9", 2)
    assert "ends at offset 2, and the state from there on is not known" in problem
    assert why in problem
    again = read(spark, tmp_path)
    assert again == (value, [(offset, problem)])  # told though nothing is read anew
    done = CliRunner().invoke(cli, ["internals", "--warehouse", f"{tmp_path}/wh", "--at", "9"])
    assert (done.exit_code, problem in done.output) == (1, True)
    done = CliRunner().invoke(cli, ["internals", "--warehouse", f"{tmp_path}/wh", "--at", "1"])
    assert (done.exit_code, problem in done.output) == (0, False)
    done = CliRunner().invoke(cli, ["internals", "changed", "--warehouse", f"{tmp_path}/wh"])
    assert (done.exit_code, problem in done.output) == (1, True)


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_whole_snapshot_behind_what_is_not_understood_begins_the_history(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = copy(tmp_path, 1, made.log_bytes([*KNOWN, UNKNOWN_TYPE, CHANGE, made.no_op()]))
    snapshot = made.snapshot_bytes([*KNOWN, CHANGE], end_offset=4)
    (folder / "__cluster_metadata-0" / f"{4:020d}-{1:010d}.checkpoint").write_bytes(snapshot)

    assert read(spark, tmp_path) == ("1", [])


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_an_end_that_most_voters_lack_is_not_committed(spark: SparkSession, tmp_path: Path) -> None:
    copy(tmp_path, 1, made.log_bytes([*KNOWN, CHANGE]))
    for node in (2, 3):
        copy(tmp_path, node, made.log_bytes(KNOWN))

    value, ((offset, problem),) = read(spark, tmp_path)

    assert (value, offset) == ("9", 2)
    assert "not committed: a majority of the 3 voters' copies at hand lacks them" in problem


@pytest.mark.slow
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "ends",
    [
        ([made.no_op()], [], []),  # changes nothing
        ([CHANGE], [CHANGE], []),  # a majority has it
        pytest.param(([CHANGE], [CHANGE], [CHANGE]), marks=pytest.mark.long),
        ([CHANGE], []),  # the third voter may have it
    ],
)
def test_ends_that_may_be_committed_are_no_problem(
    spark: SparkSession, tmp_path: Path, ends: tuple[list[bytes], ...]
) -> None:
    for node, end in enumerate(ends, 1):
        copy(tmp_path, node, made.log_bytes([*KNOWN, *end]))

    value, problems = read(spark, tmp_path)

    assert (value, problems) == ("1" if CHANGE in ends[0] else "9", [])


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_deposed_leaders_end_is_settled_by_what_others_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    copy(tmp_path, 1, made.log_bytes([*KNOWN, CHANGE, CHANGE]))
    later = made.log_bytes([OTHER_CHANGE], base_offset=2, epoch=2)
    for node in (2, 3):
        quorum = QUORUM.replace('"leaderEpoch":1', '"leaderEpoch":2')
        copy(tmp_path, node, made.log_bytes(KNOWN), later, quorum=quorum)

    assert read(spark, tmp_path) == ("2", [])


@pytest.mark.slow
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("third", "value"), [(None, "9"), (OTHER_CHANGE, "2")])
def test_copies_that_contradict_each_other_are_told(
    spark: SparkSession, tmp_path: Path, third: bytes | None, value: str
) -> None:
    ends = [CHANGE, OTHER_CHANGE, *([] if third is None else [third])]
    for node, end in enumerate(ends, 1):
        copy(tmp_path, node, made.log_bytes([*KNOWN, end]))

    found, problems = read(spark, tmp_path)

    assert found == value
    assert any(at == 2 and "contradict each other" in problem for at, problem in problems)


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_leader_epoch_that_the_files_beside_the_log_deny_is_left_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    forged = made.log_bytes([CHANGE], base_offset=2, epoch=9)
    copy(tmp_path, 1, made.log_bytes(KNOWN), forged, more="0\n1\n1 0\n")

    value, ((offset, problem),) = read(spark, tmp_path)

    assert (value, offset) == ("9", 2)
    assert "of leader epoch 9, and its quorum-state and leader-epoch-checkpoint know" in problem


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        "{",
        pytest.param("[" * 99_999, id="nested"),
        '{"leaderEpoch": "1", "currentVoters": 5}',
    ],
)
def test_a_quorum_state_that_tells_nothing(text: str | None) -> None:
    assert parse_quorum_state(text) == (None, None)


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_two_incomplete_copies_tell_the_whole_history(spark: SparkSession, tmp_path: Path) -> None:
    later = made.log_bytes([CHANGE, made.no_op()], base_offset=2)
    made.log_dir(tmp_path / "b1", {f"{2:020d}.log": later, "quorum-state": QUORUM.encode()})
    copy(tmp_path, 2, made.log_bytes([*KNOWN, CHANGE]))

    assert read(spark, tmp_path) == ("1", [])
    topics = Warehouse(spark, str(tmp_path / "wh")).read(METADATA_CONFIGS)
    assert sorted((row["value"], row["from_offset"]) for row in topics.collect()) == [
        ("1", 2),
        ("9", 1),
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_an_epoch_behind_the_end_of_all_copies_tells_that_records_are_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    copy(tmp_path, 1, made.log_bytes(KNOWN), more="0\n2\n1 0\n2 5\n")

    value, ((offset, problem),) = read(spark, tmp_path)

    assert (value, offset) == ("9", 2)
    assert "ends at offset 2, and the state from there on is not known" in problem
    assert "leader-epoch-checkpoint has epoch 2 from offset 5 on" in problem


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_snapshot_behind_the_end_of_all_copies_tells_that_records_are_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = copy(tmp_path, 1, made.log_bytes(KNOWN), more="0\n1\n1 0\n")
    snapshot = made.snapshot_bytes([*KNOWN, CHANGE], end_offset=5)
    (folder / "__cluster_metadata-0" / f"{5:020d}-{1:010d}.checkpoint").write_bytes(snapshot)

    value, ((offset, problem),) = read(spark, tmp_path)

    assert (value, offset) == ("9", 2)
    assert "of the log nothing from offset 2 on" in problem


@pytest.mark.slow
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("more", ["0\n2\n1 0\n2 2\n", "0\n2\n1 0\n2 5\n", "0\n9"])
def test_epochs_that_a_copy_reaches_tell_of_nothing_missing(
    spark: SparkSession, tmp_path: Path, more: str
) -> None:
    copy(tmp_path, 1, made.log_bytes(KNOWN), more=more)
    longer = made.log_bytes([CHANGE, *[made.no_op()] * 3], base_offset=2)
    copy(tmp_path, 2, made.log_bytes(KNOWN), longer)

    assert read(spark, tmp_path) == ("1", [])


NO_BATCHES = b"\0\0\0\0\0\0\1" * 20
LONG = [*KNOWN, *[made.no_op()] * 3]


@pytest.mark.slow
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("files", "end"),
    [
        ({0: made.log_bytes(LONG), 5: NO_BATCHES}, 5),
        (
            {
                0: made.log_bytes(LONG),
                99: made.log_bytes([CHANGE], base_offset=5) + NO_BATCHES,  # its name is another's
                6: made.log_bytes(LONG[2:], base_offset=6),
            },
            9,
        ),
    ],
)
def test_a_history_ends_before_a_segment_that_cannot_be_read_wherever_its_damage_is(
    spark: SparkSession, tmp_path: Path, files: dict[int, bytes], end: int
) -> None:
    named = {f"{base:020d}.log": data for base, data in files.items()}
    made.log_dir(tmp_path / "b1", {**named, "quorum-state": QUORUM.encode()})

    _, ((offset, problem),) = read(spark, tmp_path)

    assert offset == end
    assert f"{max(named)} in the copy of broker 1" in problem
    assert "cannot be read from byte" in problem


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_of_a_cluster_whose_metadata_folder_is_bare_it_is_said_that_nothing_is_known(
    spark: SparkSession, tmp_path: Path
) -> None:
    copy(tmp_path, 1, made.log_bytes(KNOWN))
    bare = made.log_dir(tmp_path / "b2", {"quorum-state": QUORUM.encode()}, cluster="other")
    (bare / "t-0").mkdir()
    (bare / "t-0" / f"{0:020d}.log").write_bytes(b"")

    value, ((offset, problem),) = read(spark, tmp_path)

    assert (value, offset) == ("9", None)
    assert problem.startswith("its metadata cannot be told: the log has no records")
    asked = ("internals", "--warehouse", str(tmp_path / "wh"), "--at", "1")
    told = CliRunner().invoke(cli, asked)
    assert told.exit_code == 1
    assert "cluster other: its metadata cannot be told" in told.stderr

    whole = made.log_dir(tmp_path / "c", {f"{0:020d}.log": made.log_bytes(KNOWN)}, cluster="other")
    whole.rename(tmp_path / "b3")  # another disk of the same cluster has it
    assert read(spark, tmp_path)[1] == []


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_snapshot_is_read_through_no_link_that_is_not_followed(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = made.log_bytes([CHANGE, made.no_op()], base_offset=5)
    folder = made.log_dir(tmp_path / "b1", {f"{5:020d}.log": log}) / "__cluster_metadata-0"
    elsewhere = tmp_path / "b1" / "kept"
    elsewhere.write_bytes(made.snapshot_bytes(KNOWN, end_offset=5))
    (folder / f"{5:020d}-{1:010d}.checkpoint").symlink_to(elsewhere)

    value, ((offset, problem),) = read(spark, tmp_path)

    assert (value, offset) == (None, None)
    assert problem.startswith("its metadata cannot be told: the log goes on from offset 5")
    asked = ("internals", "--source", str(tmp_path / "b1"), "--warehouse", str(tmp_path / "wh2"))
    told = CliRunner().invoke(cli, asked)
    assert "1 folders, links or odd files not looked into" in told.stderr
    followed = CliRunner().invoke(cli, (*asked, "--follow-links"))
    assert followed.exit_code == 0, followed.output
