"""Files through pyarrow.fs: names made absolute, ranges read, whole files published or none."""

import os
import re
from pathlib import Path

import pytest
from pyarrow import fs

from kafka_segments.errors import SourceError, UsageError
from kafka_segments.files.storage import files
from kafka_segments.files.storage.durable_files import temporary_name
from kafka_segments.files.storage.files import Place, list_folder, open_segment, place, read_whole
from kafka_segments.files.storage.publishing import publish, publish_page
from kafka_segments.files.storage.typed_uris import absolute_uri


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/data/logs", "/data/logs"),
        ("/data/logs/", "/data/logs"),
        ("//data//logs", "/data/logs"),
        ("/data/./x/../logs", "/data/logs"),
        ("/", "/"),
        ("/a%20b?c#d", "/a%20b?c#d"),
        ("file:///data/logs/", "/data/logs"),
        ("file:///data/x/../logs", "/data/logs"),
        ("file:////data/logs", "/data/logs"),
        ("file://localhost/data", "/data"),
        ("file:///", "/"),
        ("file:///a%20b", "/a b"),
        ("s3://bucket/logs/", "s3://bucket/logs"),
        ("hdfs://name:8020/logs", "hdfs://name:8020/logs"),
    ],
)
def test_what_a_user_types_becomes_an_absolute_uri(text, expected):
    assert absolute_uri(text) == expected


def test_a_relative_path_begins_where_the_user_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/kafka")

    assert absolute_uri("logs") == f"{tmp_path}/logs"
    assert absolute_uri("~/logs") == "/home/kafka/logs"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an empty path is no source or target"),
        ("/logs/\udcff", "/logs/\\xff: no UTF-8, tables and URIs cannot name it; rename it"),
        ("file://data/logs", "file://data/logs names the host data: a local path is file:///…"),
        ("s3://[bucket", "s3://[bucket: Invalid IPv6 URL"),
        ("s3:/b/x", "s3:…: a URI begins with s3://; a path of that name is written ./s3:…"),
        ("t:0/x", "t:…: a URI begins with t://; a path of that name is written ./t:…"),
        (
            "hdfs:///logs",
            "hdfs:///logs names no host or bucket, and no default is looked up, as that of"
            " Hadoop's fs.defaultFS: hdfs://NAME/…",
        ),
    ],
)
def test_what_is_no_uri_is_refused(text, message):
    with pytest.raises(UsageError) as raised:
        absolute_uri(text)

    assert str(raised.value) == message


def test_a_path_is_a_place_on_the_local_file_system():
    found = place("/data/logs")

    assert isinstance(found.filesystem, fs.LocalFileSystem)
    assert found.path == "/data/logs"
    assert found.child("t-0", "", "x.log").path == "/data/logs/t-0/x.log"


def test_a_scheme_without_a_file_system_is_refused():
    with pytest.raises(UsageError) as raised:
        place("nope://x/y")

    assert str(raised.value) == "nope://x: Unrecognized filesystem type in URI: …"


@pytest.mark.parametrize("open_uri", [absolute_uri, place])
@pytest.mark.parametrize(
    "uri",
    [
        "s3://AKIA:secret@bucket/logs",
        "s3://AKIA:sec/ret@bucket/logs",
        "s3://AKIA:123/secret@bucket/logs",
        "s3a://secret@bucket/logs",
        "gs://user:secret@bucket",
        "abfss://container:sec/ret@account.dfs.core.windows.net/logs",
        "hdfs://user:secret@name:8020/logs",
        "nope://user:secret@[x/y",
    ],
)
def test_credentials_in_a_uri_are_refused_and_not_repeated(open_uri, uri):
    with pytest.raises(UsageError, match=r"^[a-z0-9]+://…: credentials in a URI") as raised:
        open_uri(uri)

    assert "secret" not in str(raised.value)
    assert "sec/ret" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "s3:/user:secret@bucket/p",
        "s3:user:secret@bucket",
        "HDFS:/user:sec/ret@name/p",
        "wasbs:user:secret@container",
        "s3:///user:secret@bucket/p",
        "gs:///user:sec/ret@bucket",
        "hdfs://[user:secret@name/p",
        "s3://bucket/user:secret@x/../p",
        "file://user@secret/data",
    ],
)
def test_credentials_in_what_is_nearly_a_uri_are_not_repeated(text):
    with pytest.raises(UsageError) as raised:
        absolute_uri(text)

    assert not re.search("secret|sec/ret", str(raised.value))


def test_a_path_with_a_colon_is_one_where_it_begins_as_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert absolute_uri("./s3:/x") == f"{tmp_path}/s3:/x"
    assert absolute_uri("logs/a:b@c") == f"{tmp_path}/logs/a:b@c"
    assert absolute_uri("/s3:/x") == "/s3:/x"


def test_options_in_a_uri_are_refused_and_not_repeated():
    with pytest.raises(
        UsageError, match=r"^s3://bucket/logs\?…: options in a URI are not"
    ) as raised:
        absolute_uri("s3://bucket/logs?access_key=secret&region=eu-west-1")

    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "uri",
    [
        "abfss://container@account.dfs.core.windows.net/logs",
        "hdfs://user@name:8020/logs",
        "hdfs://[::1]:8020/logs",
        "gs://bucket/a@b:c",
    ],
)
def test_a_name_with_a_user_or_a_port_is_no_credential(uri):
    assert absolute_uri(uri) == uri


def test_a_folder_is_listed_sorted_by_name(tmp_path):
    (tmp_path / "b").write_bytes(b"123")
    (tmp_path / "a").mkdir()
    os.utime(tmp_path / "b", ns=(0, 1_700_000_000_123_456_789))

    folder, file = list_folder(place(str(tmp_path)))

    assert (folder.name, folder.is_folder) == ("a", True)
    assert file == files.FileEntry("b", False, 3, 1_700_000_000_123_456_789)


def test_a_folder_that_is_not_there_cannot_be_listed(tmp_path):
    with pytest.raises(SourceError, match="No such file or directory"):
        list_folder(place(str(tmp_path / "gone")))


def test_a_small_file_is_read_whole_and_a_large_one_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"12345")
    file = place(str(tmp_path)).child("x")

    assert read_whole(file, most_bytes=5) == b"12345"
    with pytest.raises(OSError, match=r"^5 bytes, at most 4 expected$"):
        read_whole(file, most_bytes=4)


@pytest.mark.parametrize(
    ("position", "wanted", "expected"),
    [
        pytest.param(0, 10, b"0123456789", id="whole"),
        pytest.param(3, 4, b"3456", id="within"),
        pytest.param(7, 10, b"789", id="past the end"),
        pytest.param(10, 5, b"", id="at the end"),
        pytest.param(50, 5, b"", id="behind the end"),
        pytest.param(0, 0, b"", id="nothing"),
    ],
)
def test_a_read_gives_what_is_there(tmp_path, position, wanted, expected):
    (tmp_path / "x").write_bytes(b"0123456789")
    buffer = bytearray(wanted)

    with open_segment(place(str(tmp_path / "x"))) as segment:
        read = segment.read_into(position, memoryview(buffer))

    assert segment.size_bytes == 10
    assert (read, bytes(buffer[:read])) == (len(expected), expected)


def test_a_file_that_shrinks_while_it_is_open_is_read_short(tmp_path):
    file = tmp_path / "x"
    file.write_bytes(b"0123456789")
    buffer = bytearray(10)

    with open_segment(place(str(file))) as segment:
        os.truncate(file, 4)
        read = segment.read_into(0, memoryview(buffer))

    assert (segment.size_bytes, read) == (10, 4)


def test_a_file_that_is_not_there_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError), open_segment(place(str(tmp_path / "gone"))):
        pass


# --- publishing ---


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_published_file_has_its_bytes_and_nothing_is_left_beside_it(tmp_path):
    publish(place(str(tmp_path / "x.index")), b"12345678")

    assert names_in(tmp_path) == ["x.index"]
    assert (tmp_path / "x.index").read_bytes() == b"12345678"


def test_a_published_file_replaces_the_one_before(tmp_path):
    (tmp_path / "x.index").write_bytes(b"a much longer file")

    publish(place(str(tmp_path / "x.index")), b"new")

    assert (tmp_path / "x.index").read_bytes() == b"new"


@pytest.mark.parametrize("error", [OSError(28, "No space left"), KeyboardInterrupt()])
def test_a_rename_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, error):
    def fail(source, target):
        raise error

    (tmp_path / "x.index").write_bytes(b"old")
    monkeypatch.setattr(os, "replace", fail)

    with pytest.raises(type(error)):
        publish(place(str(tmp_path / "x.index")), b"new")

    assert names_in(tmp_path) == ["x.index"]
    assert (tmp_path / "x.index").read_bytes() == b"old"


def test_a_rename_that_fails_leaves_nothing_where_nothing_was(tmp_path, monkeypatch):
    def fail(source, target):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", fail)

    with pytest.raises(PermissionError):
        publish(place(str(tmp_path / "x.index")), b"new")

    assert names_in(tmp_path) == []


def test_the_file_has_all_its_bytes_before_it_has_its_name(tmp_path, monkeypatch):
    real, seen = os.replace, []

    def replace(source, target):
        seen.append((Path(source).name, Path(source).read_bytes(), Path(target).exists()))
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)

    publish(place(str(tmp_path / "x.index")), b"12345678")

    ((name, data, had_name),) = seen
    assert name.startswith(".x.index.")
    assert name.endswith(".kafka-segments-tmp")
    assert (data, had_name) == (b"12345678", False)


def test_what_a_killed_run_left_of_a_page_goes_with_the_next_one(tmp_path):
    left = Path(temporary_name(str(tmp_path / "page.html")))
    left.touch()
    os.utime(left, (5, 5))

    publish_page(place(str(tmp_path / "page.html")), b"<p>")

    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        publish(place(str(tmp_path / "gone" / "x.index")), b"new")


@pytest.mark.parametrize("before", [None, b"a much longer file"])
def test_other_file_systems_get_the_file_by_a_rename(tmp_path, before):
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    if before is not None:
        (tmp_path / "x.index").write_bytes(before)

    publish(Place(store, "x.index"), b"12345678")

    assert names_in(tmp_path) == ["x.index"]
    assert (tmp_path / "x.index").read_bytes() == b"12345678"


def test_an_mtime_of_the_far_future_counts_as_the_last_that_64_bits_hold(tmp_path):
    (tmp_path / "00.log").touch()
    os.utime(tmp_path / "00.log", (0, 2**34 - 1))  # in 2514; ext4 takes 2446 for it

    (file,) = list_folder(place(str(tmp_path)))

    assert (tmp_path / "00.log").stat().st_mtime_ns > 2**63
    assert file.mtime_ns == 2**63 - 1
