"""Index files are published whole or not at all, and nothing is replaced without a way back."""

import os

import pytest

from kafka_segments.files.changes import index_files
from kafka_segments.files.changes.index_files import IndexOutput, IndexPublisher

BASE = 1000
INDEX = "00000000000000001000.index"
TIME_INDEX = "00000000000000001000.timeindex"
LONG_AGO_NS = 1_600_000_000_000_000_000


class Setting:
    """A source with one partition, an index folder, a set-aside folder, and publishers."""

    def __init__(self, root, *, in_place: bool = False) -> None:
        self.source = root / "logs"
        self.set_aside = root / "set_aside" / "run-1" / "t-0"
        self.target = (self.source if in_place else root / "indexes") / "t-0"
        (self.source / "t-0").mkdir(parents=True)
        self._output = IndexOutput(
            index_dir=None if in_place else str(root / "indexes"),
            set_aside=str(root / "set_aside" / "run-1"),
            folders={str(self.source): ""},
        )

    def publish(self, published: dict[str, bytes | None]) -> None:
        IndexPublisher(self._output).publish(str(self.source), "t-0", BASE, published)

    def put(self, name: str, data: bytes) -> None:
        self.target.mkdir(parents=True, exist_ok=True)
        (self.target / name).write_bytes(data)
        os.utime(self.target / name, ns=(LONG_AGO_NS, LONG_AGO_NS))


@pytest.fixture
def outside(tmp_path):
    return Setting(tmp_path)


@pytest.fixture
def in_place(tmp_path):
    return Setting(tmp_path, in_place=True)


@pytest.fixture(params=["outside", "in_place"])
def anywhere(request, tmp_path):
    return Setting(tmp_path, in_place=request.param == "in_place")


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def test_new_files_are_written_and_nothing_is_set_aside(anywhere):
    anywhere.publish({".index": b"12345678", ".timeindex": b""})

    assert contents(anywhere.target) == {INDEX: b"12345678", TIME_INDEX: b""}
    assert contents(anywhere.set_aside) == {}


def test_a_file_with_the_same_bytes_is_left_alone(anywhere):
    anywhere.put(INDEX, b"12345678")

    anywhere.publish({".index": b"12345678"})

    assert (anywhere.target / INDEX).stat().st_mtime_ns == LONG_AGO_NS
    assert contents(anywhere.set_aside) == {}


def test_an_empty_file_that_is_there_is_left_alone(anywhere):
    anywhere.put(TIME_INDEX, b"")

    anywhere.publish({".timeindex": b""})

    assert (anywhere.target / TIME_INDEX).stat().st_mtime_ns == LONG_AGO_NS


@pytest.mark.parametrize("made", [b"12345678", b""])
def test_a_file_with_other_bytes_is_set_aside_and_replaced(anywhere, made):
    anywhere.put(INDEX, b"padded\0\0")

    anywhere.publish({".index": made})

    assert contents(anywhere.target) == {INDEX: made}
    assert contents(anywhere.set_aside) == {INDEX: b"padded\0\0"}


@pytest.mark.parametrize("made", [b"12345678", b""])
def test_a_link_that_leads_nowhere_is_replaced(outside, tmp_path, made):
    outside.target.mkdir(parents=True)
    (outside.target / INDEX).symlink_to(tmp_path / "nowhere")

    outside.publish({".index": made})

    assert contents(outside.target) == {INDEX: made}
    assert not (outside.target / INDEX).is_symlink()
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("again", [False, True])
def test_a_link_that_is_replaced_is_kept_as_a_link_and_its_file_stays(outside, tmp_path, again):
    other = tmp_path / "other"
    other.write_bytes(b"padded")
    outside.target.mkdir(parents=True)
    (outside.target / INDEX).symlink_to(other)

    outside.publish({".index": None if again else b"12345678"})
    if again:
        (outside.target / INDEX).symlink_to(other)
        outside.publish({".index": b"12345678"})

    assert contents(outside.target) == {INDEX: b"12345678"}
    assert not (outside.target / INDEX).is_symlink()
    assert str((outside.set_aside / INDEX).readlink()) == str(other)
    assert other.read_bytes() == b"padded"


def test_none_removes_a_file_of_an_earlier_run_and_keeps_it_aside(outside):
    outside.put(INDEX, b"12345678")

    outside.publish({".index": None})

    assert contents(outside.target) == {}
    assert contents(outside.set_aside) == {INDEX: b"12345678"}


def test_none_removes_nothing_beside_the_segments(in_place):
    in_place.put(INDEX, b"12345678")

    in_place.publish({".index": None})

    assert contents(in_place.target) == {INDEX: b"12345678"}
    assert contents(in_place.set_aside) == {}


def test_none_makes_no_folder_where_there_is_no_file(outside):
    outside.publish({".index": None, ".timeindex": None})

    assert not outside.target.exists()


def test_a_task_that_runs_twice_changes_nothing_the_second_time(anywhere):
    anywhere.put(INDEX, b"old")
    published = {".index": b"12345678", ".timeindex": b"123456789012"}
    anywhere.publish(published)
    os.utime(anywhere.target / INDEX, ns=(LONG_AGO_NS, LONG_AGO_NS))

    anywhere.publish(published)

    assert contents(anywhere.target) == {INDEX: b"12345678", TIME_INDEX: b"123456789012"}
    assert (anywhere.target / INDEX).stat().st_mtime_ns == LONG_AGO_NS
    assert contents(anywhere.set_aside) == {INDEX: b"old"}


def test_a_task_that_runs_again_over_a_grown_segment_keeps_the_first_bytes_aside(anywhere):
    anywhere.put(INDEX, b"a broker's")
    anywhere.publish({".index": b"first try"})

    anywhere.publish({".index": b"second try"})

    assert contents(anywhere.target) == {INDEX: b"second try"}
    assert contents(anywhere.set_aside) == {INDEX: b"a broker's"}


def test_a_removal_that_runs_twice_does_no_harm(outside):
    outside.put(INDEX, b"12345678")
    outside.publish({".index": None})

    outside.publish({".index": None})

    assert contents(outside.set_aside) == {INDEX: b"12345678"}


def test_a_rename_that_fails_leaves_the_old_file_in_its_place(anywhere, monkeypatch):
    def fail(source, target):
        raise OSError(28, "No space left on device")

    anywhere.put(INDEX, b"old")
    monkeypatch.setattr(os, "replace", fail)

    with pytest.raises(OSError, match="No space left"):
        anywhere.publish({".index": b"12345678"})

    assert contents(anywhere.target) == {INDEX: b"old"}
    assert contents(anywhere.set_aside) == {}


def test_a_file_that_cannot_be_set_aside_is_not_replaced(anywhere, monkeypatch):
    def fail(target, data):
        raise PermissionError(13, "Permission denied", target.path)

    anywhere.put(INDEX, b"old")
    monkeypatch.setattr(index_files, "publish", fail)

    with pytest.raises(PermissionError, match="set_aside"):
        anywhere.publish({".index": b"12345678"})

    assert contents(anywhere.target) == {INDEX: b"old"}


def test_a_partition_that_is_the_source_itself_is_published_into_the_index_folder(tmp_path):
    output = IndexOutput(
        index_dir=str(tmp_path / "indexes"), set_aside=str(tmp_path / "aside"), folders={"/t-0": ""}
    )

    IndexPublisher(output).publish("/t-0", "", BASE, {".index": b"12345678"})

    assert contents(tmp_path / "indexes") == {INDEX: b"12345678"}


def test_every_source_of_several_has_a_folder_of_its_own():
    output = IndexOutput(
        index_dir="s3://bucket/indexes",
        set_aside="/aside/run-1",
        folders={"/data/a": "a", "/data/b": "b"},
    )

    assert output.folder("/data/a", "t-0") == "s3://bucket/indexes/a/t-0"
    assert output.folder("/data/b", "") == "s3://bucket/indexes/b"
    assert output.set_aside_folder("/data/b", "t-0") == "/aside/run-1/b/t-0"


def test_beside_the_segments_is_where_the_source_says():
    output = IndexOutput(index_dir=None, set_aside="/aside", folders={"/data/a": "a"})

    assert output.folder("/data/a", "t-0") == "/data/a/t-0"
