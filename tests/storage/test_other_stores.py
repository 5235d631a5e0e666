"""Google's and Azure's stores and HDFS by URI; files on Google's by an emulator."""

import subprocess
import sys

import pytest
from pyarrow import fs

from kafka_segments.errors import FileReplacedError, OutageError, SourceError, UsageError
from kafka_segments.files.changes.index_files import IndexOutput, IndexPublisher
from kafka_segments.files.folders.walk import find_segments
from kafka_segments.files.storage import stores, webhdfs
from kafka_segments.files.storage.files import Place, open_segment, place, read_whole
from kafka_segments.files.storage.publishing import publish
from support.stores.cached_stores import forget_stores

INDEX = "00000000000000000000.index"
LOG = "00000000000000000000.log"


_EMULATOR = """
from functools import partial
from http.server import ThreadingHTTPServer
from gcp_storage_emulator.server import RequestHandler
from gcp_storage_emulator.storage import Storage

handler = partial(RequestHandler, Storage(use_memory_fs=True))
server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture
def google(monkeypatch):
    """A bucket on an emulator, which Google's own libraries find by a variable too."""
    # Arrow keeps Python's lock while it opens a file there, so it is a process of its own.
    server = subprocess.Popen([sys.executable, "-c", _EMULATOR], stdout=subprocess.PIPE, text=True)
    address = f"127.0.0.1:{server.stdout.readline().strip()}"
    monkeypatch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", f"http://{address}")
    forget_stores()
    admin = fs.GcsFileSystem(
        anonymous=True, scheme="http", endpoint_override=address, project_id="tests"
    )
    admin.create_dir("bucket")
    yield "gs://bucket"
    forget_stores()
    server.kill()
    server.communicate()


def test_segments_on_googles_store_are_found_and_read_and_index_files_published(google):
    data = bytes(range(256)) * 1024
    for partition in range(3):
        publish(place(f"{google}/logs").child(f"t-{partition}", LOG), data)

    found = find_segments([f"{google}/logs"])
    with open_segment(place(found.segments[0].path)) as opened:
        read = bytearray(len(data))
        opened.read_into(0, memoryview(read))
        opened.check_unchanged()
        publish(place(found.segments[0].path), b"another")
        with pytest.raises(FileReplacedError):
            opened.check_unchanged()
    output = IndexOutput(f"{google}/indexes", f"{google}/aside", {f"{google}/logs": ""})
    for index in (b"12345678", b"87654321"):
        IndexPublisher(output).publish(f"{google}/logs", "t-0", 0, {".index": index})

    assert read == data
    assert [segment.partition for segment in found.segments] == [0, 1, 2]
    kept = [
        read_whole(place(f"{google}/{at}/t-0/{INDEX}"), most_bytes=8) for at in ("indexes", "aside")
    ]
    assert kept == [b"87654321", b"12345678"]
    with pytest.raises(SourceError, match="No such file"):
        find_segments([f"{google}/none"])


class Azure:
    """A local folder that behaves as an account of Azure without a hierarchical namespace."""

    type_name = "abfs"

    def __init__(self):
        self._files = fs.LocalFileSystem()
        self.seen = []

    def __getattr__(self, name):
        return getattr(self._files, name)

    def open_output_stream(self, path):
        self.seen.append(path)
        return self._files.open_output_stream(path)

    def move(self, *_):
        raise NotImplementedError


def test_a_file_on_azure_is_never_written_under_its_own_name(tmp_path):
    azure = Azure()
    file = Place(azure, f"{tmp_path}/x.index")
    publish(file, b"before")
    publish(file, b"after")

    assert read_whole(file, most_bytes=6) == b"after"
    assert [found.name for found in tmp_path.iterdir()] == ["x.index"]
    assert all(path.endswith(".kafka-segments-tmp") for path in azure.seen)


@pytest.mark.parametrize(
    ("uri", "kind", "path"),
    [
        ("gs://bucket/logs/t-0", "gcs", "bucket/logs/t-0"),
        ("gcs://bucket/a%20b", "gcs", "bucket/a%20b"),
        ("abfss://box@account.dfs.core.windows.net/logs", "abfs", "box/logs"),
        ("abfs://box@account.dfs.core.windows.net", "abfs", "box"),
        ("webhdfs://name:9870/logs/t-0", "py::webhdfs", "/logs/t-0"),
        ("webhdfs://name", "py::webhdfs", ""),
    ],
)
def test_a_uri_tells_the_store_and_the_path_and_sends_nothing(uri, kind, path):
    found = place(uri)

    assert (found.filesystem.type_name, found.path) == (kind, path)


@pytest.mark.parametrize(
    "uri",
    [
        "gs://key:secret@bucket/x",
        "abfss://box:secret@account.dfs.core.windows.net/x",
        "hdfs://user:secret@name:8020/x",
        "webhdfs://user:secret@name:9870/x",
    ],
)
def test_credentials_in_a_uri_are_refused_and_not_repeated(uri):
    with pytest.raises(UsageError, match="credentials in a URI") as told:
        place(uri)

    assert "secret" not in str(told.value)


def test_hdfs_without_hadoops_library_names_it_and_the_way_without():
    with pytest.raises(UsageError) as told:
        place("hdfs://name:8020/logs")

    assert "libhdfs" in str(told.value)
    assert "webhdfs://name:9870" in str(told.value)


def test_a_name_node_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(webhdfs, "_TRIES", 0)
    forget_stores()

    with pytest.raises(SourceError, match=r"localhost.*port=1"):
        find_segments(["webhdfs://localhost:1/logs"])
    with pytest.raises(OutageError, match=r"localhost.*port=1"):
        stores.hadoop_uri("webhdfs://localhost:1/tables")


@pytest.mark.parametrize("uri", ["wasb://x/y", "http://x/y", "nfs://x/y"])
def test_a_scheme_that_nobody_knows_is_named(uri):
    with pytest.raises(UsageError, match=uri.partition(":")[0]):
        place(uri)
