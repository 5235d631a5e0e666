"""What does not answer for now is told from what is wrong: a scheduler tries the first again."""

import errno
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from kafka_segments.console import early
from kafka_segments.errors import OutageError, SourceError, is_answerless
from kafka_segments.files.storage import stores, webhdfs
from kafka_segments.files.storage.files import list_folder, place
from kafka_segments.files.storage.outages import is_outage
from support.spark.connect_client import status_of
from support.stores.cached_stores import forget_stores

S3 = "When listing objects under key 'x/' in bucket 'b': AWS Error {} during ListObjectsV2: said"
GONE_AWAY = [
    *map(
        S3.format,
        (
            *("NETWORK_CONNECTION", "SLOW_DOWN", "SERVICE_UNAVAILABLE", "INTERNAL_FAILURE"),
            *("REQUEST_TIMEOUT", "UNKNOWN (HTTP status 429)", "UNKNOWN (HTTP status 502)"),
        ),
    ),
    "google::cloud::Status(UNAVAILABLE: Retry policy exhausted)",
    "HTTP status 503: Service Unavailable",
    "SafeModeException: Name node is in safe mode",
    "HDFS list directory failed. Detail: ConnectException: Connection refused",
]
REFUSED = [
    *map(
        S3.format,
        (
            *("NO_SUCH_BUCKET", "ACCESS_DENIED", "INVALID_ACCESS_KEY_ID"),
            *("REQUEST_TIME_TOO_SKEWED", "UNKNOWN (HTTP status 400)"),
        ),
    ),
    "google::cloud::Status(NOT_FOUND: The specified bucket does not exist.)",
    "google::cloud::Status(PERMISSION_DENIED: no)",
    "HTTP status 404: Not Found",
]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(stores, "_MOST_TRIES", 1)
    monkeypatch.setattr(webhdfs, "_TRIES", 0)
    forget_stores()
    yield
    forget_stores()


def test_a_store_that_does_not_answer_is_told_by_its_words():
    assert [text for text in GONE_AWAY if not is_outage(OSError(text))] == []
    assert [text for text in REFUSED if is_outage(OSError(text))] == []


def test_a_mount_whose_server_is_gone_does_not_answer_and_a_missing_folder_does():
    gone = (errno.ESTALE, errno.ETIMEDOUT, errno.EIO, errno.ENOTCONN, errno.EHOSTDOWN)
    there = (errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ELOOP)

    assert all(is_outage(OSError(number, os.strerror(number), "/mnt/logs")) for number in gone)
    assert not any(is_outage(OSError(number, os.strerror(number), "/mnt/logs")) for number in there)


@pytest.mark.parametrize(
    "uri", ["s3://outages/logs", "webhdfs://127.0.0.1:9/logs", "webhdfs://nowhere.invalid/logs"]
)
def test_a_store_that_nobody_serves_is_an_outage(uri, monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    with pytest.raises(SourceError, match=r"; it does not answer for now, run this again$") as told:
        list_folder(place(uri))

    assert is_answerless(told.value)


def test_a_name_node_that_does_not_answer_is_an_outage_for_spark_as_well():
    with pytest.raises(OutageError, match="it does not answer for now, run this again"):
        stores.hadoop_uri("webhdfs://127.0.0.1:9/warehouse")


@pytest.mark.parametrize("status", [503, 403])
def test_a_gateway_that_is_overloaded_is_an_outage_and_one_that_refuses_is_none(status):
    class Gateway(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(status)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Gateway)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with pytest.raises(SourceError) as told:
            list_folder(place(f"webhdfs://127.0.0.1:{server.server_port}/logs"))
    finally:
        server.shutdown()
        server.server_close()

    assert is_answerless(told.value) == (status == 503)


@pytest.fixture
def bucket(object_store):
    object_store.files.create_dir("outages")
    yield "outages"
    object_store.refuses = lambda _: False


@pytest.mark.parametrize(
    "words",
    [
        ("records", "--source", "s3://outages/logs"),
        ("search", "--warehouse", "s3://outages/wh", "--topic", "t", "--time", "0"),
    ],
    ids=["a source", "a warehouse"],
)
def test_a_verb_whose_store_refuses_for_now_failed_and_is_tried_again(
    words, object_store, bucket, capfd
):
    object_store.put(f"{bucket}/logs/t-0/00000000000000000000.log", b"")
    object_store.refuses = lambda _: True

    status = status_of(list(words))

    said = capfd.readouterr().err.splitlines()[-1]
    assert (status, said.endswith("; it does not answer for now, run this again")) == (3, True)
    assert "AWS Error SLOW_DOWN" in said


def test_a_bucket_that_is_not_there_is_wrong_usage(object_store, capfd):
    assert status_of(["records", "--source", "s3://no-such-bucket/logs"]) == 2
    assert "AWS Error NO_SUCH_BUCKET" in capfd.readouterr().err


def test_a_disk_that_does_not_answer_fails_before_a_session(monkeypatch, tmp_path, capfd):
    def scandir(folder):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), folder)

    monkeypatch.setattr(early.os, "scandir", scandir)

    assert status_of(["records", "--source", str(tmp_path)]) == 3
    assert "Stale file handle" in capfd.readouterr().err


def test_nothing_is_asked_of_names_that_only_look_so(tmp_path):
    source = tmp_path / "AWS Error SLOW_DOWN "

    with pytest.raises(SourceError) as told:
        list_folder(place(str(source)))

    assert not is_answerless(told.value)
