"""Files on HDFS, over HTTP: whole or not at all, and no refusal taken for bytes."""

import subprocess
import sys

import pytest
from pyarrow import fs

from kafka_segments.errors import FileReplacedError, SourceError
from kafka_segments.files.storage import webhdfs
from kafka_segments.files.storage.files import (
    Place,
    list_folder,
    open_segment,
    place,
    read_if_there,
    read_whole,
)
from kafka_segments.files.storage.publishing import make_folder, publish, remove_folder
from support.stores.mini_hdfs import MiniHdfs

MIB = 1024 * 1024


@pytest.fixture
def folder(hdfs: MiniHdfs, request: pytest.FixtureRequest) -> Place:
    made = place(f"{hdfs.web_uri}/{request.node.name}")
    make_folder(made)
    return made


@pytest.mark.parametrize("size", [0, 5, 20 * MIB])
def test_files_are_read_as_they_were_written_and_replaced_in_one_step(
    folder: Place, size: int
) -> None:
    file = folder.child("a b%20+?#é.log")
    data = bytes(range(256)) * (size // 256) + bytes(range(size % 256))

    for _ in range(2):
        publish(file, data)
        with open_segment(file) as opened:
            read = bytearray(size)
            assert opened.read_into(0, memoryview(read)) == size
            opened.check_unchanged()
            publish(file, b"another")
            with pytest.raises(FileReplacedError):
                opened.check_unchanged()
        assert read == data
        assert read_if_there(file, most_bytes=7) == b"another"
    assert [entry.name for entry in list_folder(folder)] == ["a b%20+?#é.log"]


_KILLED = """
import os, sys
from kafka_segments.files.storage import webhdfs
from kafka_segments.files.storage.files import place
from kafka_segments.files.storage.publishing import publish

class Killed(webhdfs.WebHdfs):
    def upload(self, path, data):
        def half():
            yield bytes(4 * 1024 * 1024)
            os._exit(9)
        super().upload(path, half())

webhdfs.WebHdfs = Killed
publish(place(sys.argv[1]), bytes(8 * 1024 * 1024))
"""


def test_a_publication_that_is_killed_leaves_the_file_that_was_there(
    hdfs: MiniHdfs, folder: Place
) -> None:
    file = folder.child("x.index")
    publish(file, b"before")

    command = [sys.executable, "-c", _KILLED, f"{hdfs.web_uri}{file.path}"]
    killed = subprocess.run(command, check=False)

    assert killed.returncode == 9
    (left,) = [entry.name for entry in list_folder(folder) if entry.name != "x.index"]
    assert left.endswith(".kafka-segments-tmp")
    assert read_whole(file, most_bytes=6) == b"before"
    publish(file, b"after")
    assert read_whole(file, most_bytes=6) == b"after"


def test_a_publication_that_fails_leaves_nothing_but_the_file_that_was_there(
    folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder.child("x.index")
    publish(file, b"before")

    def refused(*_: object) -> None:
        raise OSError("no more room")

    monkeypatch.setattr(webhdfs.WebHdfs, "move", refused)
    with pytest.raises(OSError, match="no more room"):
        publish(file, b"after")

    assert [entry.name for entry in list_folder(folder)] == ["x.index"]
    assert read_whole(file, most_bytes=6) == b"before"


def test_what_hdfs_refuses_is_said_and_never_taken_for_a_files_bytes(folder: Place) -> None:
    file = folder.child("x.log")
    publish(file, bytes(10))

    with pytest.raises(SourceError, match=r"FileNotFoundException: File .* does not exist"):
        list_folder(folder.child("none"))
    with pytest.raises(SourceError, match="is no folder"):
        list_folder(file)
    with pytest.raises(OSError, match="a folder"):
        read_if_there(folder, most_bytes=1)
    with open_segment(file) as opened:
        publish(file, bytes(4))
        with pytest.raises(OSError, match="out of the range"):
            opened.read_into(0, memoryview(bytearray(10)))
    remove_folder(folder)
    remove_folder(folder)
    assert folder.filesystem.get_file_info(folder.path).type == fs.FileType.NotFound
