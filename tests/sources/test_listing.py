"""What a source's folders hold: nothing is left out in silence."""

import os
from pathlib import Path

import pytest

from kafka_segments.engine.sources.missing import no_segments
from kafka_segments.errors import SourceError
from kafka_segments.files.folders import kinds, source_folder
from kafka_segments.files.folders import listing_rows as listing
from kafka_segments.files.folders.source_folder import list_source_folder
from kafka_segments.files.folders.unread_notes import unread_in
from kafka_segments.files.folders.walk import ListedSegment, UnlistedFolder, find_segments
from kafka_segments.files.storage.local_folder import list_local_folder
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.text import checkpoints
from kafka_segments.kafka.text.names import file_name
from support.logs.strategies import v2_batch

HASH = "0123456789abcdef0123456789abcdef"
TOPIC_ID = "MWJ6FHTfRYy67jzwZdeqSQ"


@pytest.fixture
def tree(tmp_path):
    """Give a function that writes files (path -> text or bytes) below a new folder."""
    root = tmp_path / "source"
    root.mkdir()

    def write(files: dict[str, str | bytes]) -> str:
        for path, content in files.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(root)

    return write


def segment(base_offset: int) -> str:
    return file_name(base_offset, ".log")


def rows_of(kind: str, source: str, relative_path: str = "") -> list[listing.Listed]:
    return [row for row in list_source_folder(source, relative_path) if row.kind == kind]


def reasons(
    source: str, relative_path: str = "", *, kinds: tuple[str, ...] = kinds.NOT_TAKEN
) -> dict[str, str | None]:
    rows = [row for kind in kinds for row in rows_of(kind, source, relative_path)]
    return {row.name: row.reason for row in rows}


def folders_of(source: str) -> list[str]:
    return [row.relative_path for row in rows_of(kinds.FOLDER, source)]


# --- a partition's folder ---


def test_a_partitions_folder_gives_its_segments_in_order_the_last_one_active(tree):
    source = tree({f"t-0/{segment(1000)}": b"12345", f"t-0/{segment(0)}": b"1"})
    os.utime(f"{source}/t-0/{segment(0)}", ns=(0, 1_700_000_000_123_456_789))

    first, last = rows_of(kinds.SEGMENT, source, "t-0")

    assert first == listing.Listed(
        kind="segment",
        source=source,
        relative_path="t-0",
        name=segment(0),
        log_dir=source,
        topic="t",
        partition=0,
        folder_state="live",
        base_offset=0,
        size_bytes=1,
        mtime_ns=1_700_000_000_123_456_789,
        is_active=False,
        next_base_offset=1000,
    )
    assert (last.base_offset, last.size_bytes, last.is_active) == (1000, 5, True)


def test_a_partitions_folder_may_be_the_source(tree):
    source = f"{tree({f't-0/{segment(0)}': b''})}/t-0"

    (found,) = rows_of(kinds.SEGMENT, source)

    assert (found.source, found.relative_path) == (source, "")
    assert (found.topic, found.partition) == ("t", 0)
    assert found.log_dir == source.removesuffix("/t-0")


def test_a_log_has_its_topic_id_and_leader_epochs(tree):
    source = tree(
        {
            f"t-0/{segment(0)}": b"",
            "t-0/partition.metadata": f"version: 0\ntopic_id: {TOPIC_ID}",
            "t-0/leader-epoch-checkpoint": "0\n2\n3 1000\n5 1006\n",
        }
    )

    (log,) = rows_of(kinds.LOG, source, "t-0")

    assert log.topic_id == TOPIC_ID
    assert log.leader_epochs == [(3, 1000), (5, 1006)]
    assert log.reason is None


def test_files_that_cannot_be_parsed_are_the_logs_reason(tree):
    source = tree(
        {
            f"t-0/{segment(0)}": b"",
            "t-0/partition.metadata": b"\xff",
            "t-0/leader-epoch-checkpoint": "7\n",
        }
    )

    (log,) = rows_of(kinds.LOG, source, "t-0")

    assert (log.topic_id, log.leader_epochs) == (None, None)
    assert log.reason == (
        "partition.metadata: 'utf-8' codec can't decode byte 0xff in position 0: invalid start"
        " byte; leader-epoch-checkpoint: version is '7', 0 expected (line 1)"
    )


def test_a_file_that_may_not_be_read_is_the_logs_reason(tree, monkeypatch):
    def refuse(file, *, most_bytes):
        raise PermissionError(13, "Permission denied", file.path)

    source = tree({f"t-0/{segment(0)}": b"", "t-0/leader-epoch-checkpoint": "0\n0\n"})
    monkeypatch.setattr(listing, "read_whole", refuse)

    (log,) = rows_of(kinds.LOG, source, "t-0")

    assert log.reason is not None
    assert log.reason.startswith(
        "leader-epoch-checkpoint: [Errno 13] Permission denied:"
        f" '{source}/t-0/leader-epoch-checkpoint'; it is "
    )
    assert "run this by `sudo -u " in log.reason


def test_a_pipe_in_place_of_a_checkpoint_is_the_reason_and_no_missing_file(tree):
    source = tree({f"t-0/{segment(0)}": b"", checkpoints.CLEAN_SHUTDOWN: ""})
    os.mkfifo(f"{source}/t-0/leader-epoch-checkpoint")
    os.mkfifo(f"{source}/{checkpoints.HIGH_WATERMARK}")

    (log,), (log_dir,) = rows_of(kinds.LOG, source, "t-0"), rows_of(kinds.LOG_DIR, source)

    assert log.reason == "leader-epoch-checkpoint: a pipe, a socket or a device, no file"
    assert log_dir.reason == f"{checkpoints.HIGH_WATERMARK}: a pipe, a socket or a device, no file"
    assert log_dir.meta["was_clean_shutdown"]


def test_what_was_not_read_beside_segments_is_counted_with_an_example(tree):
    source = tree(
        {
            f"t-0/{segment(0)}": b"",
            "t-0/leader-epoch-checkpoint": "7\n",
            checkpoints.HIGH_WATERMARK: "0\n1\n",
        }
    )
    rows = [*list_source_folder(source, ""), *list_source_folder(source, "t-0")]

    found = unread_in(rows)

    assert (found.places, found.example) == (
        2,
        f"{source}/t-0: leader-epoch-checkpoint: version is '7', 0 expected (line 1)",
    )
    assert list(unread_in(rows[:0]).lines()) == []
    assert list(found.lines()) == [
        f"not known what is noted beside segments: {found.example} (2 such log directories and"
        " logs)"
    ]


@pytest.mark.parametrize("text", ["", "\0" * 40, "version=1\ncluster.id=abc\n"])
def test_properties_that_do_not_say_whose_the_directory_is_are_told(tree, text):
    source = tree({f"t-0/{segment(0)}": b"", "meta.properties": text})

    (log_dir,) = rows_of(kinds.LOG_DIR, source)

    assert log_dir.reason == "meta.properties: no node id is in it"


def test_a_text_file_of_absurd_size_is_not_read(tree, monkeypatch):
    source = tree({f"t-0/{segment(0)}": b"", "t-0/leader-epoch-checkpoint": "0\n0\n"})
    monkeypatch.setattr(listing, "MOST_TEXT_BYTES", 3)

    (log,) = rows_of(kinds.LOG, source, "t-0")

    assert log.reason == "leader-epoch-checkpoint: 4 bytes, at most 3 expected"


def test_an_empty_folder_of_a_partition_is_a_log_without_segments(tree):
    source = tree({"t-0/partition.metadata": f"version: 0\ntopic_id: {TOPIC_ID}"})

    kinds = [row.kind for row in list_source_folder(source, "t-0")]

    assert kinds == ["log"]


@pytest.mark.parametrize(
    ("checkpoint", "found"),
    [
        ("0\n2\nt 0 7\nt 1 9\n", "the high watermark 7 of the log"),
        ("0\n1\nt 0 0\n", None),
        ("0\n1\nt 1 9\n", None),
        ("0\n1\nt 0 x\n", None),
        (b"\xff", None),
        (None, None),
    ],
)
def test_a_folder_without_segments_is_named_where_its_log_is_noted_to_have_records(
    tree, checkpoint, found
):
    files = {"t-0/partition.metadata": f"version: 0\ntopic_id: {TOPIC_ID}"}
    if checkpoint is not None:
        files[checkpoints.HIGH_WATERMARK] = checkpoint
    source = tree(files)

    rows = [row for row in list_source_folder(source, "t-0") if row.kind in kinds.NOT_TAKEN]

    told = [(row.kind, join_uri(row.source, row.relative_path), row.name) for row in rows]
    assert told == ([(kinds.UNRECOGNIZED, f"{source}/t-0", "")] if found else [])
    assert all(found in row.reason for row in rows)
    assert not reasons(f"{source}/t-0")  # what lies above the source was not asked about


def test_a_log_with_a_segment_is_not_named_whatever_is_noted_of_it(tree):
    source = tree({f"t-0/{segment(0)}": b"", checkpoints.HIGH_WATERMARK: "0\n1\nt 0 7\n"})

    assert not reasons(source, "t-0")


def test_a_checkpoint_that_is_a_pipe_is_not_waited_for(tree):
    source = tree({"t-0/partition.metadata": ""})
    os.mkfifo(f"{source}/{checkpoints.HIGH_WATERMARK}")

    assert not reasons(source, "t-0")


def test_a_partitions_folder_is_one_though_a_folder_lies_in_place_of_its_segment(tree):
    source = tree({"t-0/leader-epoch-checkpoint": "0\n0\n", f"t-0/{segment(0)}/x": b""})

    assert reasons(source, "t-0") == {segment(0): "a folder inside a partition's folder"}
    assert rows_of(kinds.LOG, source, "t-0")


def test_names_that_only_look_like_segments_say_what_a_broker_would_do(tree):
    names = ["7.log", "abc.log", "x.log.deleted", f"{segment(0)}.swap", f"{segment(6)}.cleaned"]
    leftover = f".{segment(0)}.ab.kafka-segments-tmp"
    source = tree({f"t-0/{name}": b"" for name in [segment(0), leftover, *names]})
    left_over = "left over from compaction, a split or a deletion; a broker resolves it at start"

    found = reasons(source, "t-0")

    assert found == {
        "7.log": "no segment name: a broker would open 00000000000000000007.log instead",
        "abc.log": "no segment name: 20 digits and .log expected; a broker would not start",
        "x.log.deleted": left_over,
        f"{segment(0)}.swap": left_over,
        f"{segment(6)}.cleaned": left_over,
        leftover: "unfinished file of a kafka-segments run that was stopped; may be removed",
    }
    assert [row.base_offset for row in rows_of(kinds.SEGMENT, source, "t-0")] == [0]
    assert set(reasons(source, "t-0", kinds=(kinds.LEFT_OVER,)).values()) == {left_over}


@pytest.mark.parametrize(
    ("names", "unread"),
    [
        ([segment(0), f"{segment(0)}.swap"], {}),
        ([f"{segment(0)}.swap", f"{segment(0)}.deleted", segment(9)], {0: "makes it"}),
        ([f"{segment(0)}.swap", f"{segment(0)}.deleted"], {0: "makes it"}),
        ([segment(0), f"{segment(0)}.swap", f"{segment(5)}.swap"], {}),  # a split: 0 holds both
        ([segment(0), f"{segment(5)}.swap", f"{segment(0)}.deleted"], {5: "makes it"}),
        ([segment(0), f"{segment(5)}.swap", segment(9)], {5: "makes it"}),
        ([f"{segment(0)}.swap", f"{segment(0)}.cleaned"], {0: "deletes it"}),
        ([segment(0), f"{file_name(5, '.index')}.swap", f"{segment(5)}.cleaned"], {}),
        ([segment(0), "x.log.swap", f"{2**63:020d}.log.swap"], {}),
    ],
)
def test_records_that_a_swap_file_alone_holds_are_a_finding(tree, names, unread):
    source = tree({f"t-0/{name}": b"" for name in names})

    found = reasons(source, "t-0", kinds=(kinds.UNRECOGNIZED,))

    assert found.keys() == {f"{segment(base)}.swap" for base in unread}
    for base, does in unread.items():
        reason = found[f"{segment(base)}.swap"]
        assert "was not read, and no segment holds its records" in reason
        assert f"a broker's start {does}" in reason


def test_a_swap_file_of_a_log_that_goes_is_left_over(tree):
    name = f"t-0.{32 * 'a'}-delete"
    source = tree({f"{name}/{segment(0)}.swap": b""})

    assert not reasons(source, name, kinds=(kinds.UNRECOGNIZED,))


def test_a_start_takes_finished_swaps_for_segments(tree):
    whole, half = v2_batch(5, [(5, None, b"v")]), v2_batch(0, [(0, None, b"v")] * 6)
    names = {segment(0): whole, segment(5): whole, segment(9): b"", f"{segment(0)}.swap": half}
    source = tree({f"t-0/{name}": data for name, data in names.items()})

    rows = [*list_source_folder(source, "t-0", finishes_swaps=True)]

    found = [
        (row.name, row.base_offset, row.next_base_offset)
        for row in rows
        if row.kind == kinds.SEGMENT
    ]
    assert found == [(f"{segment(0)}.swap", 0, 9), (segment(9), 9, None)]
    assert {row.name: row.reason for row in rows if row.kind == kinds.LEFT_OVER} == {
        name: f"a broker's start puts {segment(0)}.swap in its place"
        for name in (segment(0), segment(5))
    }


def test_a_swap_that_no_start_can_read_replaces_nothing(tree):
    source = tree({f"t-0/{segment(0)}": b"", f"t-0/{segment(0)}.swap": bytes(99)})

    rows = [*list_source_folder(source, "t-0", finishes_swaps=True)]

    assert [row.name for row in rows if row.kind == kinds.SEGMENT] == [segment(0)]


PACKED = (".log.gz", ".log.zst", ".log.bak", ".log (1)", ".log.1", ".log~", ".LOG", ".log.part")
OTHERS = ("backup.tar", "README", "any.index", "5.tierstate", f"{0:020d}.tierstate", ".x")


def test_a_file_that_kafka_does_not_know_has_a_row_and_is_no_finding(tree):
    source = tree({f"t-0/{name}": b"" for name in (segment(0), *OTHERS)})

    found = reasons(source, "t-0", kinds=(kinds.PASSED_OVER,))

    assert found.pop("backup.tar") == (
        "a packed archive: not read; a broker passes over it; unpack it, and give the folder in it"
    )
    assert found == dict.fromkeys(OTHERS[1:], "no file of Kafka's: a broker passes over it")
    assert reasons(source, "t-0").keys() == {*found, "backup.tar"}


def test_a_text_file_that_a_broker_is_writing_is_its_own(tree):
    files = ("leader-epoch-checkpoint.tmp", "partition.metadata.tmp", "quorum-state.tmp")
    of_dir = ("meta.properties", "meta.properties.tmp", "log-start-offset-checkpoint.tmp")
    of_log = [f"t-0/{name}" for name in (segment(0), *files)]
    source = tree(dict.fromkeys((*of_dir, *of_log), b""))

    assert not reasons(source, "t-0")
    assert not reasons(source, "")


@pytest.mark.parametrize("suffix", PACKED)
def test_a_copy_of_a_segment_is_a_finding_where_the_segment_is_not_there(tree, suffix):
    beside, alone = file_name(0, suffix), file_name(12, suffix)
    source = tree({f"t-0/{name}": b"" for name in (segment(0), beside, alone)})

    assert reasons(source, "t-0", kinds=(kinds.PASSED_OVER,)) == {
        beside: f"named as a copy of {segment(0)}: a broker passes over it"
    }
    assert reasons(source, "t-0", kinds=(kinds.UNRECOGNIZED,)) == {
        alone: f"named as a copy of {segment(12)}, which is not there: a broker passes over it,"
        f" and it was not read; if it is the segment, put it there as {segment(12)}"
    }


def test_a_folder_of_packed_segments_alone_is_no_empty_log(tree):
    source = tree({f"t-0/{file_name(0, '.log.gz')}": b""})

    assert list(reasons(source, "t-0", kinds=(kinds.UNRECOGNIZED,))) == [file_name(0, ".log.gz")]


def test_files_that_a_broker_keeps_beside_segments_need_no_row(tree):
    names = (f"{7:020d}-{3:010d}.checkpoint", "quorum-state", "partition.metadata")
    names = (*names, "leader-epoch-checkpoint", f"{7:020d}.snapshot")
    source = tree({f"__cluster_metadata-0/{name}": b"" for name in (segment(0), *names)})

    assert reasons(source, "__cluster_metadata-0") == {}


def test_other_files_beside_logs_have_a_row_and_those_of_the_broker_none(tree):
    own = ("meta.properties", ".lock", "bootstrap.checkpoint", checkpoints.RECOVERY_POINT)
    names = ("server.log", "notes.txt", f"{file_name(3, '.log.gz')}")
    source = tree({f"t-0/{segment(0)}": b"", **dict.fromkeys((*own, *names), b"")})

    assert list(reasons(source, kinds=(kinds.PASSED_OVER,))) == ["notes.txt", "server.log"]
    assert list(reasons(source, kinds=(kinds.UNRECOGNIZED,))) == [file_name(3, ".log.gz")]


def test_a_base_offset_above_int64_is_no_segment(tree):
    source = tree({"t-0/99999999999999999999.log": b""})

    assert reasons(source, "t-0") == {
        "99999999999999999999.log": (
            "no segment name: 20 digits and .log expected; a broker would not start"
        )
    }


def test_a_folder_inside_a_partitions_folder_is_named(tree):
    source = tree({f"t-0/{segment(0)}": b"", f"t-0/{segment(5)}/x": b""})

    assert reasons(source, "t-0") == {segment(5): "a folder inside a partition's folder"}


def test_a_pipe_or_a_dangling_link_named_like_a_segment_is_named_and_not_opened(tree, tmp_path):
    source = tree({f"t-0/{segment(0)}": "x"})
    folder = f"{source}/t-0"
    os.mkfifo(f"{folder}/{segment(10)}")
    os.mkfifo(f"{folder}/leader-epoch-checkpoint")
    Path(f"{folder}/{segment(20)}").symlink_to(tmp_path / "nowhere")

    assert [row.name for row in rows_of(kinds.SEGMENT, source, "t-0")] == [segment(0)]
    assert reasons(source, "t-0") == {
        segment(10): "a pipe, a socket or a device, no file",
        segment(20): f"a link that leads nowhere: {tmp_path}/nowhere is not there",
        "leader-epoch-checkpoint": "a pipe, a socket or a device, no file",
    }


def test_index_files_and_snapshots_need_no_row(tree):
    names = [file_name(0, suffix) for suffix in (".index", ".timeindex", ".txnindex", ".snapshot")]
    source = tree({f"t-0/{name}": b"" for name in [segment(0), *names]})

    kinds = [row.kind for row in list_source_folder(source, "t-0")]

    assert kinds == ["segment", "log"]


@pytest.mark.parametrize(("state", "kind"), [("delete", "left_over"), ("stray", "unrecognized")])
def test_segments_of_a_folder_that_a_broker_does_not_serve_are_named_as_such(tree, state, kind):
    folder = f"t-0.{HASH}-{state}"
    source = tree({f"{folder}/{segment(0)}": b"123"})

    (row,) = list_source_folder(source, folder)

    assert row == listing.Listed(
        kind=kind,
        source=source,
        relative_path=folder,
        name=segment(0),
        size_bytes=3,
        reason=f"the folder is marked -{state}, a broker does not serve it",
    )


def test_a_future_folder_has_segments_marked_so(tree):
    folder = f"t-0.{HASH}-future"
    source = tree({f"{folder}/{segment(0)}": b""})

    (found,) = rows_of(kinds.SEGMENT, source, folder)

    assert (found.topic, found.partition, found.folder_state) == ("t", 0, "future")


# --- log directories, and folders of several ---


def test_a_log_directory_says_who_it_belongs_to_and_how_it_was_shut_down(tree):
    source = tree(
        {
            f"t-0/{segment(0)}": b"",
            "meta.properties": "version=1\ncluster.id=abc\nnode.id=7\n",
            ".kafka_cleanshutdown": "",
            ".lock": "",
        }
    )

    (log_dir,) = rows_of(kinds.LOG_DIR, source)

    assert log_dir.log_dir == source
    assert log_dir.meta == {
        "version": 1,
        "cluster_id": "abc",
        "node_id": 7,
        "directory_id": None,
        "was_clean_shutdown": True,
        "has_lock_file": True,
        "has_cleaner_offsets": False,
        "has_high_watermarks": False,
        "has_log_starts": False,
    }


def test_a_log_directory_without_meta_properties_is_one_too(tree):
    source = tree({f"t-0/{segment(0)}": b""})

    (log_dir,) = rows_of(kinds.LOG_DIR, source)

    assert log_dir.meta == {
        "was_clean_shutdown": False,
        "has_lock_file": False,
        "has_cleaner_offsets": False,
        "has_high_watermarks": False,
        "has_log_starts": False,
    }
    assert log_dir.offsets == []


def test_the_checkpoints_of_a_log_directory_are_joined_by_partition(tree):
    source = tree(
        {
            checkpoints.RECOVERY_POINT: "0\n2\nt 0 5\nt 1 6\n",
            checkpoints.LOG_START_OFFSET: "0\n1\nt 1 2\n",
            checkpoints.HIGH_WATERMARK: "0\n1\nt 0 9\n",
            checkpoints.CLEANER_OFFSET: "",
        }
    )

    (log_dir,) = rows_of(kinds.LOG_DIR, source)

    assert log_dir.offsets == [
        {"topic": "t", "partition": 0, "recovery_point": 5, "high_watermark": 9},
        {"topic": "t", "partition": 1, "recovery_point": 6, "log_start_offset": 2},
    ]


def test_a_corrupt_checkpoint_is_the_log_directorys_reason_and_the_others_are_read(tree):
    source = tree(
        {
            checkpoints.RECOVERY_POINT: "0\n1\nt 99999999999 5\n",
            checkpoints.HIGH_WATERMARK: "0\n1\nt 0 9\n",
            "meta.properties": "node.id=seven\n",
        }
    )

    (log_dir,) = rows_of(kinds.LOG_DIR, source)

    assert log_dir.offsets == [{"topic": "t", "partition": 0, "high_watermark": 9}]
    assert log_dir.reason == (
        "meta.properties: 'seven' is no int32 (node.id);"
        " recovery-point-offset-checkpoint: '99999999999' is no int32 (line 3)"
    )


def test_every_folder_of_a_log_directory_is_gone_on_with(tree):
    source = tree({f"{name}/{segment(0)}": b"" for name in ("t-0", "t-1", "other")})

    assert folders_of(source) == ["other", "t-0", "t-1"]


def test_two_folders_of_one_partition_cannot_both_count(tree):
    source = tree({f"{name}/{segment(0)}": b"" for name in ("t-01", "t-1", "t-001")})
    reason = "the same partition as t-1; a broker would not start"

    assert folders_of(source) == ["t-1"]
    assert reasons(source) == {"t-001": reason, "t-01": reason}


def test_a_deleted_folder_is_no_double_of_the_live_one(tree):
    source = tree({f"{name}/{segment(0)}": b"" for name in ("t-1", f"t-1.{HASH}-delete")})

    assert folders_of(source) == ["t-1", f"t-1.{HASH}-delete"]


def test_a_log_file_outside_a_partitions_folder_is_named(tree):
    source = tree({f"logs/{segment(0)}": b"", "logs/server.log": b"started"})
    reason = "its folder's name, logs, is no <topic>-<partition>"

    found = reasons(source, "logs")

    assert found[segment(0)] == reason
    assert found["server.log"].startswith("what Kafka's programs log about themselves: not read; a")


def test_a_folder_of_log_directories_whose_name_looks_like_a_partitions(tree):
    source = tree({f"backup-2024/t-0/{segment(0)}": b""})

    assert [row.relative_path for row in list_source_folder(source, "backup-2024")] == [
        "backup-2024",
        "backup-2024/t-0",
    ]


def test_an_empty_source_gives_nothing(tree):
    assert list(list_source_folder(tree({}), "")) == []


def test_a_folder_that_cannot_be_listed_is_a_row(tree):
    source = tree({"file": b""})

    (missing,) = list_source_folder(source, "gone")
    (no_folder,) = list_source_folder(source, "file")

    assert (missing.kind, missing.relative_path) == ("unlisted", "gone")
    assert "No such file or directory" in missing.reason
    assert "Not a directory" in no_folder.reason


def test_a_name_that_is_no_utf_8_is_a_row_and_hides_nothing(tree):
    source = tree({f"t-0/{segment(0)}": b"", "t-0/\\xff.log": b""})
    root = os.fsencode(source)
    Path(os.fsdecode(root + b"/\xfe-0")).mkdir()
    for name in (b"\xff.log", b"\xed\xa0\x80"):
        with open(root + b"/t-0/" + name, "wb"):
            pass
    Path(source, "t-0", "link").symlink_to(os.fsdecode(b"/nowhere/\xff"))
    no_text = "its name is no UTF-8, so nothing can be read by it; rename it"

    assert reasons(source) == {"\\xfe-0": f"a folder; {no_text}"}
    assert reasons(source, "t-0") == {
        "\\xff.log": "no segment name: 20 digits and .log expected; a broker would not start",
        "\\xff.log\\": no_text,  # a key of its own
        "\\xed\\xa0\\x80": no_text,
        "link": "a link that leads nowhere: /nowhere/\\xff is not there",
    }
    assert [file.relative_path for file in find_segments([source]).segments] == ["t-0"]


# --- links ---


def test_links_to_folders_above_list_nothing_twice_and_end(tree, tmp_path):
    source = tree({f"t-0/{segment(0)}": b"1"})
    Path(source, "loop").symlink_to(".")
    Path(source, "up").symlink_to("..")
    Path(source, "t-0", "up").symlink_to("..")
    once = [ListedSegment(source, "t-0", segment(0), "t", 0, 0, None, 1)]
    endless = "following it would never end"

    assert find_segments([source]).segments == once
    assert reasons(source) == {
        "loop": f"a link, to {source}: not followed; --follow-links does",
        "up": f"a link out of the source, to {tmp_path}: not followed; --follow-links does, with"
        " what it leads to as a source, too",
    }
    assert reasons(source, "t-0") == {
        "up": f"a link, to {source}: not followed; --follow-links does"
    }

    assert find_segments([source], follow_links=True).segments == once
    followed = [*list_source_folder(source, "", follow_into=(source,))]
    assert {row.name: row.reason for row in followed if row.kind == kinds.NOT_FOLLOWED} == {
        "loop": f"a link to {source}, which holds it: {endless}",
        "up": f"a link to {tmp_path}, which holds it: {endless}",
    }


def test_links_that_lead_to_each_other_end(tree):
    source = tree({f"a/t-0/{segment(0)}": b"", f"b/t-1/{segment(0)}": b""})
    Path(source, "a", "x").symlink_to("../b")
    Path(source, "b", "y").symlink_to("../a")

    found = find_segments([source], follow_links=True)

    assert [file.relative_path for file in found.segments] == ["a/t-0", "b/t-1"]
    assert found.unlisted == []


def test_a_segment_or_a_log_that_is_a_link_is_read_only_when_asked(tree, tmp_path):
    source = tree({f"t-0/{segment(0)}": b"1", "t-2/x": b""})
    secret = tmp_path / "secret"
    secret.write_bytes(b"0123456789")
    Path(source, "t-0", segment(5)).symlink_to(secret)
    Path(source, "t-2", "leader-epoch-checkpoint").symlink_to(secret)
    (tmp_path / "t-1").mkdir()
    (tmp_path / "t-1" / segment(0)).write_bytes(b"12")
    Path(source, "t-1").symlink_to(tmp_path / "t-1")
    reason = (
        "a link out of the source, to {}: not followed; --follow-links does, with what it leads"
    )
    reason += " to as a source, too"
    alone = "a link out of the sources, to {}: not followed; give that as a source, too"

    left, refused = find_segments([source]), find_segments([source], follow_links=True)
    followed = find_segments([source, str(tmp_path)], follow_links=True)

    assert [(file.partition, file.size_bytes) for file in left.segments] == [(0, 1)]
    assert left.unlisted == [
        UnlistedFolder(f"{source}/t-1", "t", 1, reason.format(tmp_path / "t-1")),
        UnlistedFolder(f"{source}/t-0/{segment(5)}", "t", 0, reason.format(secret)),
    ]
    assert refused.segments == left.segments
    assert refused.unlisted == [
        UnlistedFolder(f"{source}/t-1", "t", 1, alone.format(tmp_path / "t-1")),
        UnlistedFolder(f"{source}/t-0/{segment(5)}", "t", 0, alone.format(secret)),
    ]
    assert [row.size_bytes for row in rows_of(kinds.NOT_FOLLOWED, source, "t-0")] == [0]
    (log,) = rows_of(kinds.LOG, source, "t-2")
    assert (log.leader_epochs, log.reason) == (
        None,
        f"leader-epoch-checkpoint: {reason.format(secret)}",
    )
    assert [(file.partition, file.size_bytes) for file in followed.segments] == [
        *((0, 1), (0, 10), (1, 2))
    ]
    assert followed.unlisted == []


def test_a_source_that_is_a_link_is_what_was_asked_for(tree, tmp_path):
    source = tree({f"t-0/{segment(0)}": b"1"})
    (tmp_path / "current").symlink_to(source)

    found = find_segments([str(tmp_path / "current")])

    assert [file.source for file in found.segments] == [str(tmp_path / "current")]


def test_what_is_no_file_in_a_log_directory_is_named(tree):
    source = tree({f"t-0/{segment(0)}": b"", "meta.properties": "node.id=1\n"})
    os.mkfifo(f"{source}/recovery-point-offset-checkpoint")

    assert reasons(source) == {
        "recovery-point-offset-checkpoint": "a pipe, a socket or a device, no file"
    }


def test_folders_too_far_below_the_source_are_named(tree):
    source = tree({f"a/b/c/t-0/{segment(0)}": b"", f"a/b/t-1/{segment(0)}": b""})

    found = find_segments([source])

    (row,) = rows_of(kinds.UNLISTED, source, "a/b/c")
    assert (row.relative_path, row.name) == ("a/b/c/t-0", "")
    assert [file.relative_path for file in found.segments] == ["a/b/t-1"]
    assert found.unlisted == [
        UnlistedFolder(
            f"{source}/a/b/c/t-0",
            "t",
            0,
            "cannot list the folder: it lies 4 levels below its source, too deep",
        )
    ]


# --- the walk in the driver ---


def test_the_walk_finds_segments_below_several_sources_sorted(tree):
    root = tree(
        {
            f"broker-1/t-0/{segment(10)}": b"12",
            f"broker-1/t-0/{segment(0)}": b"1",
            f"broker-2/logs/t-1/{segment(0)}": b"",
        }
    )
    sources = [f"{root}/broker-2", f"{root}/broker-1"]

    found = find_segments(sources)

    assert found.unlisted == []
    assert found.segments == [
        ListedSegment(sources[1], "t-0", segment(0), "t", 0, 0, 10, 1),
        ListedSegment(sources[1], "t-0", segment(10), "t", 0, 10, None, 2),
        ListedSegment(sources[0], "logs/t-1", segment(0), "t", 1, 0, None, 0),
    ]
    assert found.segments[2].path == f"{root}/broker-2/logs/t-1/{segment(0)}"


def test_the_walk_passes_over_what_a_broker_does_not_serve(tree):
    states = ("delete", "stray", "future")
    source = tree({f"t-{n}.{HASH}-{state}/{segment(0)}": b"" for n, state in enumerate(states)})

    assert find_segments([source]).segments == []


def test_the_walk_takes_a_future_folder_that_is_a_source(tree):
    source = f"{tree({f't-0.{HASH}-future/{segment(0)}': b''})}/t-0.{HASH}-future"

    assert [file.name for file in find_segments([source]).segments] == [segment(0)]


def test_the_walk_names_a_folder_that_may_not_be_listed(tree, monkeypatch):
    real = source_folder.list_folder

    def list_folder(folder, **options):
        if folder.path.endswith("/t-1"):
            raise SourceError(folder.path, "Permission denied")
        return real(folder, **options)

    source = tree({f"t-0/{segment(0)}": b"", f"t-1/{segment(0)}": b""})
    monkeypatch.setattr(source_folder, "list_folder", list_folder)

    found = find_segments([source])

    assert [file.relative_path for file in found.segments] == ["t-0"]
    assert found.unlisted == [
        UnlistedFolder(f"{source}/t-1", "t", 1, "cannot list the folder: Permission denied")
    ]


def test_a_source_that_cannot_be_listed_stops_the_walk(tree):
    source = f"{tree({})}/gone"

    with pytest.raises(SourceError, match=f"^cannot list {source}: .*No such file or directory"):
        find_segments([source])


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("/data", "t-0", "x.log"), "/data/t-0/x.log"),
        (("/data", "", "x.log"), "/data/x.log"),
        (("/", "t-0"), "/t-0"),
        (("s3://bucket/", "a"), "s3://bucket/a"),
        (("", "t-0"), "t-0"),
        (("/data",), "/data"),
    ],
)
def test_parts_of_a_uri_are_joined_by_one_slash(parts, expected):
    assert join_uri(*parts) == expected


def test_files_that_no_row_tells_of_are_left_out_where_they_are_plain(tree, tmp_path):
    one, two, three, four = (file_name(number, ".index") for number in (1, 2, 3, 4))
    names = (f"t-0/{name}" for name in (one, two, segment(2), "any.index"))
    source = Path(tree({**dict.fromkeys(names, b""), "i/x": b""}))
    (source / "t-0" / three).symlink_to(tmp_path)
    (source / "t-0" / four).mkdir()

    found = list_local_folder(str(source / "t-0"), without=(".index", ".timeindex"))

    assert sorted(entry.name for entry in found) == [segment(2), three, four, "any.index"]
    assert len(list_local_folder(str(source / "t-0"))) == 6


def test_what_lies_where_there_is_no_segment_is_said_by_its_names(tree):
    source = tree({"data/kafka/orders/0_12/0-1-v1.log": b"", "data/empty/notes.txt": b""})

    assert no_segments(source) == (
        f"no segments under {source}: 1 file there is Redpanda's segments, in a format of its own,"
        " e.g. 0_12/0-1-v1.log: have Redpanda read them, and copy topics to Kafka by MirrorMaker or"
        " a client"
    )
    assert "is it mounted" in no_segments(f"{source}/data/empty")


def test_records_of_another_system_are_rows_to_look_at_beside_no_logs_alone(tree):
    name = "segment_partition_000_from_offset_0000000000_records"
    source = tree({f"backup/orders/{name}": b""})

    found = reasons(source, "backup/orders", kinds=(kinds.UNRECOGNIZED,))

    assert list(found) == [name]
    assert "restore them by the tool that wrote them" in found[name]
    beside = tree({f"logs/t-0/{segment(0)}": b"", f"logs/{name}": b""})
    assert list(reasons(beside, "logs", kinds=(kinds.PASSED_OVER,))) == [name]
