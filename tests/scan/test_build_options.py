"""What a build refuses before it touches anything."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from kafka_segments.engine.limits import MOST, Load, Work
from kafka_segments.errors import UsageError
from kafka_segments.files.changes.index_files import IndexOutput
from kafka_segments.files.folders import kinds
from kafka_segments.files.storage.folder_lock import refuse_locked
from kafka_segments.kafka.index.formats.by_name import FORMATS
from kafka_segments.kafka.index.log.loading import RecoveryMode
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan import planning
from kafka_segments.verbs.scan.options import BuildOptions, single_logs
from kafka_segments.verbs.scan.run import run_build

HOLD_LOCK = """\
import fcntl, sys
lock = open(sys.argv[1], "r+")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""
WAREHOUSE = "/warehouse"


def options(*sources: str, **changed) -> BuildOptions:
    warehouse = changed.pop("warehouse", WAREHOUSE)
    given = BuildOptions(sources, **{"recovery": RecoveryOptions(), "now_ms": 0, **changed})
    given.check_target("--warehouse", warehouse)
    return given


@pytest.mark.parametrize(
    ("sources", "changed", "message"),
    [
        pytest.param((), {}, "no --source given", id="no source"),
        pytest.param(("/a", "/a"), {}, "a source is given twice", id="twice"),
        pytest.param(
            ("/a/b", "/a"), {}, "sources overlap: /a/b lies in /a", id="one source in another"
        ),
        pytest.param(("/", "/a"), {}, "sources overlap: /a lies in /", id="everything"),
        pytest.param(
            ("/a",),
            {"in_place": True, "index_dir": "/idx"},
            "--in-place writes beside the segments: leave --index-dir out",
            id="two places",
        ),
        pytest.param(
            ("/a",),
            {"index_dir": "/a/idx"},
            "--index-dir /a/idx lies in the source /a",
            id="index-dir in a source",
        ),
        pytest.param(
            ("/a",), {"index_dir": "/a"}, "--index-dir /a lies in the source /a", id="the same"
        ),
        pytest.param(
            ("/a",),
            {"warehouse": "/a/wh"},
            "--warehouse /a/wh lies in the source /a",
            id="warehouse in a source",
        ),
        pytest.param(
            ("/a",),
            {"set_aside": "/a/old"},
            "--set-aside /a/old lies in the source /a",
            id="set-aside in a source",
        ),
        pytest.param(
            ("s3://b/a",),
            {"warehouse": "s3://b/a/wh"},
            "--warehouse s3://b/a/wh lies in the source s3://b/a",
            id="object store",
        ),
        pytest.param(
            ("s3://b/a",),
            {"warehouse": "s3a://b/a/wh"},
            "--warehouse s3a://b/a/wh lies in the source s3://b/a",
            id="a bucket by Hadoop's scheme",
        ),
        pytest.param(
            ("/data/a", "/data/b"),
            {"index_dir": "/data"},
            "the source /data/a lies in --index-dir /data",
            id="index files of a source would go into it",
        ),
        pytest.param(
            ("/warehouse/segments",),
            {},
            "the source /warehouse/segments lies in --warehouse /warehouse",
            id="a table would go into a source",
        ),
        pytest.param(
            ("/x/logs", "/y/logs"),
            {"index_dir": "/idx"},
            "2 sources end in logs: their index files would mix",
            id="names",
        ),
        *(
            pytest.param(
                ("/a",),
                {"is_first_look": True, **changed},
                f"{option} needs every batch, and --check index reads few of them: leave one of the"
                " two out",
                id=f"a first look with {option}",
            )
            for option, changed in {
                "--index-dir": {"index_dir": "/idx"},
                "--in-place": {"in_place": True},
                "--digests": {"recovery": RecoveryOptions(digest_bits=10)},
                "--record-sizes": {"has_record_sizes": True},
                "--recovery loader-unclean": {"mode": RecoveryMode.LOADER_UNCLEAN},
            }.items()
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(sources, changed, message):
    with pytest.raises(UsageError) as raised:
        options(*sources, **changed)

    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("sources", "changed"),
    [
        pytest.param(("/a", "/ab"), {}, id="names that begin alike do not overlap"),
        pytest.param(("/a",), {"index_dir": "/a-idx"}, id="nor do a source and a target"),
        pytest.param(("/x/logs", "/y/logs"), {}, id="equal names matter for index files only"),
        pytest.param(("/a",), {"in_place": True}, id="in place"),
    ],
)
def test_what_can_be_meant_is_taken(sources, changed):
    assert options(*sources, **changed).sources == sources


def test_a_build_refuses_tables_in_a_source_whoever_begins_it():
    given = BuildOptions(("/a",), recovery=RecoveryOptions(), now_ms=0)
    with pytest.raises(UsageError) as raised:
        run_build(SimpleNamespace(root="/a/wh"), given)

    assert str(raised.value) == "--warehouse /a/wh lies in the source /a"


def test_without_index_dir_and_in_place_no_index_files_are_written():
    assert options("/a").index_output(WAREHOUSE, "run-1") is None


def test_a_single_source_has_no_folder_of_its_own_below_the_index_dir():
    output = options("/data/a", index_dir="/idx").index_output(WAREHOUSE, "run-1")

    assert output == IndexOutput("/idx", "/warehouse/_set_aside/run-1", {"/data/a": ""})


def test_several_sources_keep_their_last_path_component():
    found = options("/data/a", "s3://b/c", index_dir="/idx", set_aside="/old").index_output(
        WAREHOUSE, "run-1"
    )

    assert found == IndexOutput("/idx", "/old/run-1", {"/data/a": "a", "s3://b/c": "c"})


def test_in_place_goes_beside_the_segments():
    found = options("/data/a", in_place=True).index_output(WAREHOUSE, "run-1")

    assert found == IndexOutput(None, "/warehouse/_set_aside/run-1", {"/data/a": ""})


def test_a_partitions_folder_stands_for_its_log_alone():
    topic = "t-0123456789abcdefghijkl"

    found = single_logs(("/data/t-0", "/logs", "s3://b/logs/u-1", f"s3://b/{topic}/2"))

    assert found == (("/data", "t", 0), ("s3://b/logs", "u", 1), (f"s3://b/{topic}", None, 2))


@pytest.mark.parametrize(
    "changed",
    [
        {"recovery": RecoveryOptions(index_interval_bytes=0)},
        {"recovery": RecoveryOptions(segment_index_bytes=8)},
        {"recovery": RecoveryOptions(check_crc=False)},
        {"recovery": RecoveryOptions(digest_bits=12)},
        {"has_record_sizes": True},
        {"index_dir": "/idx"},
        {"in_place": True},
    ],
)
def test_options_that_change_a_scans_result_change_its_fingerprint(changed):
    assert options("/a", **changed).fingerprint_in_words != options("/a").fingerprint_in_words


def test_options_that_change_no_result_keep_the_fingerprint():
    first = options("/a", now_ms=1, full=True).fingerprint_in_words
    second = options("/b", now_ms=2, recovery=RecoveryOptions(by_instruction=False))

    assert second.fingerprint_in_words == first == "kafka/4096/10485760/full/segment/tables"


def test_a_log_directory_whose_broker_runs_is_refused(tmp_path):
    (tmp_path / ".lock").touch()
    broker = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(tmp_path / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with broker:
        broker.stdout.readline()

        with pytest.raises(UsageError) as raised:
            refuse_locked([str(tmp_path)])

        broker.stdin.close()
    assert str(raised.value) == f"{tmp_path} is locked: stop its broker first"


def test_a_lock_file_that_nobody_holds_is_no_hindrance(tmp_path):
    (tmp_path / ".lock").touch()

    refuse_locked([str(tmp_path), "s3://bucket/logs"])

    assert (tmp_path / ".lock").read_bytes() == b""


@pytest.mark.parametrize("name", ["kip33", "minute", "every-n"])
@pytest.mark.parametrize("where", [{}, {"in_place": True}])
def test_formats_other_than_kafkas_need_an_index_dir(name, where):
    with pytest.raises(UsageError) as raised:
        options("/a", index_format=FORMATS[name](), **where)

    assert str(raised.value) == (
        f"--index-format {name} needs --index-dir: a broker would take such files beside"
        " its segments for its own, and the tables hold Kafka's entries in any format"
    )


@pytest.mark.parametrize(
    ("segments", "size_bytes", "reads_all", "is_little"),
    [
        (49_999, 16 << 30, True, True),
        (49_999, (16 << 30) + 1, True, False),
        (49_999, 1 << 50, False, True),  # first looks do not read them
        (50_000, 0, False, False),
    ],
)
def test_few_segments_are_built_as_few_rows(
    segments: int, size_bytes: int, reads_all: bool, is_little: bool
) -> None:
    listed = {kinds.SEGMENT: Load(segments, size_bytes), kinds.LOG: Load(1, 0)}

    whole = planning._whole_load(listed, reads_all=reads_all)

    assert whole.is_within(MOST[Work.BUILD]) == is_little
