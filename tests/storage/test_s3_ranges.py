"""Ranges of S3's objects by HTTP from a server that breaks off, refuses and changes its mind."""

import gc
import random
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from kafka_segments.errors import FileReplacedError
from kafka_segments.files.storage import s3_ranges
from kafka_segments.files.storage.s3_ranges import S3Bucket, S3Object, s3_bucket

DATA = random.Random(1).randbytes(300_000)
KEY = "logs/a b%20+c/x.log"
TOLD = f"s3://bucket/{KEY}, bytes 100 to 200099: "
REFUSED = b"<Error><Code>AccessDenied</Code><Message>not yours</Message></Error>"


class Answer(SimpleNamespace):
    """What the server does with a request: by default it gives the range that is asked for."""

    def __init__(self, **does):
        super().__init__(
            **{
                "status": 206,
                "etag": '"1"',
                "gives": None,
                "size": len(DATA),
                "body": b"",
                "more": b"",
                "drop": None,
                "stalls": 0,
                "is_short": False,
                "is_chunked": False,
                "is_whole": False,
                "is_one_packet": False,
            }
            | does
        )


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        asked = self.headers["Range"]
        self.server.asked.append((self.path.partition("?")[0], asked))
        self.server.peers.add(self.client_address)
        answer = next(self.server.script, None) or Answer()
        first, last = (int(number or -1) for number in asked.removeprefix("bytes=").split("-"))
        if first < 0:
            first, last = max(0, answer.size - last), answer.size - 1
        data = answer.body
        if answer.status in (200, 206):
            data = DATA[: answer.size] if answer.is_whole else DATA[first : last + 1]
        data += answer.more
        if answer.is_short:
            data, answer.gives = data[: answer.gives], None
        self.send_response(answer.status)
        if answer.is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
            data = b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)
        else:
            self.send_header("Content-Length", str(len(data)))
        if answer.status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last}/{answer.size}")
        if answer.etag is not None:
            self.send_header("ETag", answer.etag)
        if answer.is_one_packet:
            self._headers_buffer.append(b"\r\n" + data)
            self.flush_headers()
            return
        self.end_headers()
        drop = answer.drop or max(1, len(data))
        for start in range(0, len(data[: answer.gives]), drop):
            self.wfile.write(data[: answer.gives][start : start + drop])
            if answer.drop:
                time.sleep(0.001)
        if answer.stalls and not self.server.is_over.wait(answer.stalls):
            self.server.waited_out += 1
        if answer.gives is not None:
            self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *given):
        super().__init__(*given)
        self.asked, self.peers, self.kept, self.script = [], set(), set(), iter(())
        self.is_over, self.waited_out = threading.Event(), 0

    def process_request(self, request, client_address):
        self.kept.add(request)
        super().process_request(request, client_address)

    def handle_error(self, *_):
        pass

    def close_kept(self):
        while self.kept:
            self.kept.pop().shutdown(socket.SHUT_RDWR)


@pytest.fixture
def server():
    """A server that follows a script, which tests set."""
    started = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=started.serve_forever, args=(0.01,), daemon=True).start()
    yield started
    started.is_over.set()
    started.shutdown()
    started.server_close()


def views_of(data, step=70_000):
    """Give views of so many bytes, one after another."""
    return (memoryview(data)[start : start + step] for start in range(0, len(data), step))


@pytest.fixture
def read(server, monkeypatch):
    """Gives what reads 200,000 bytes of the object as that script has it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATESTACCESSKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret/that+nobody=sees")
    monkeypatch.setattr(s3_ranges, "_PAUSE_SECONDS", 0.001)
    endpoint = f"http://127.0.0.1:{server.server_port}"
    bucket = S3Bucket("bucket", region="us-east-1", endpoint=endpoint)
    found = S3Object(bucket, KEY, len(DATA))

    def read(*script, position=100, length=200_000, step=70_000):
        server.script = iter(script)
        view = bytearray(length)
        filled = found.fill(position, length, views_of(view, step))
        return bytes(view[:filled])

    def end(*script, length):
        server.script = iter(script)
        unknown = S3Object(bucket, KEY, None)
        return unknown, unknown.end(length)

    read.bucket, read.found, read.end = bucket, found, end
    yield read
    bucket.close()


def test_a_range_is_one_request_and_the_connection_is_kept(read, server):
    for _ in range(3):
        assert read() == DATA[100:200_100]

    assert server.asked == [("/bucket/logs/a%20b%2520%2Bc/x.log", "bytes=100-200099")] * 3
    assert len(server.peers) == 1


def test_where_the_views_end_the_rest_is_left(read, server):
    taken = []

    def views():
        for _ in range(2):
            taken.append(bytearray(70_000))
            yield memoryview(taken[-1])

    assert read.found.fill(100, 200_000, views()) == 140_000
    assert b"".join(taken) == DATA[100:140_100]
    assert len(server.asked) == 1
    assert read() == DATA[100:200_100]
    assert len(server.peers) == 2


def test_a_view_is_taken_when_the_store_has_answered(read, server):
    asked = []

    def views():
        asked.append(len(server.asked))
        yield memoryview(bytearray(200_000))

    read.found.fill(100, 200_000, views())

    assert asked == [1]


def test_what_is_broken_off_goes_on_from_there(read, server):
    broken = Answer(gives=150_000), Answer(status=503), Answer(gives=20_000)

    assert read(*broken) == DATA[100:200_100]

    firsts = [asked.partition("=")[2].partition("-")[0] for _, asked in server.asked]
    assert firsts == ["100", "150100", "150100", "170100"]


@pytest.mark.parametrize(
    "answer", [Answer(drop=30_000), Answer(is_one_packet=True), Answer(is_chunked=True)]
)
@pytest.mark.parametrize("step", [200_000, 8_192, 3_000])
def test_a_body_is_read_whatever_of_it_comes_at_once(read, server, answer, step):
    assert read(answer, step=step) == DATA[100:200_100]
    assert read(position=7, length=20, step=3) == DATA[7:27]

    assert len(server.asked) == 2
    if not answer.is_chunked:
        assert len(server.peers) == 1


def test_an_answer_that_ends_before_what_was_asked_for_goes_on_from_there(read, server):
    short = Answer(gives=80_000, is_short=True)

    assert read(short, Answer(gives=0, is_short=True)) == DATA[100:200_100]

    firsts = [asked.partition("=")[2].partition("-")[0] for _, asked in server.asked]
    assert firsts == ["100", "80100", "80100"]


def test_an_answer_of_the_whole_object_is_taken_where_that_was_asked_for(read, server):
    for _ in range(2):
        assert read(Answer(status=200), position=0, length=len(DATA)) == DATA

    assert len(server.peers) == 1


@pytest.mark.parametrize("given", [0, 150_000])
def test_a_body_that_stalls_is_broken_off_after_a_while(read, server, monkeypatch, given):
    monkeypatch.setattr(s3_ranges, "_READ_SECONDS", 1)

    assert read(Answer(gives=given, stalls=60)) == DATA[100:200_100]

    assert (len(server.asked), server.waited_out) == (2, 0)


def test_the_rest_of_a_body_is_received_by_one_call(read, monkeypatch):
    calls = []

    class Counted(socket.socket):
        def recv_into(self, *given):
            calls.append(given[1:])
            return super().recv_into(*given)

    monkeypatch.setattr(socket, "socket", Counted)
    for _ in range(3):
        assert read(Answer(drop=10_000), step=200_000) == DATA[100:200_100]

    bodies = [given for given in calls if len(given) > 1]
    assert len(bodies) <= 3
    assert all(flags == socket.MSG_WAITALL for _, flags in bodies)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_refusal_that_may_pass_is_tried_five_times(read, server, monkeypatch, status):
    pauses = []
    clock = SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic)
    monkeypatch.setattr(s3_ranges, "time", clock)  # its alone: other threads sleep, too
    busy = Answer(status=status, body=b"<Error><Code>Busy</Code></Error>")

    assert read(*[busy] * 4) == DATA[100:200_100]
    with pytest.raises(OSError, match=f"^{re.escape(TOLD)}{status} Busy; tried 5 times$"):
        read(*[busy] * 5)

    assert len(server.asked) == 10
    assert pauses == [0.001, 0.002, 0.004, 0.008] * 2


def test_connections_that_the_server_closed_meanwhile_are_no_matter(read, server):
    read()
    url = urlsplit(f"http://127.0.0.1:{server.server_port}/")
    for kept in [read.bucket.connection(url) for _ in range(8)]:
        read.bucket.keep(kept)
    while len(server.kept) < 8:
        time.sleep(0.01)
    server.close_kept()

    assert read() == DATA[100:200_100]
    assert len(server.asked) == 2


def test_a_server_that_keeps_no_connection_gets_new_ones(read, server, monkeypatch):
    monkeypatch.setattr(Handler, "protocol_version", "HTTP/1.0")

    for _ in range(3):
        assert read(Answer(status=503)) == DATA[100:200_100]

    assert len(server.peers) == 6
    with pytest.raises(FileReplacedError):
        read(Answer(etag='"2"'))
    gc.collect()  # what was not closed is said by a warning, which fails


def test_an_answer_longer_than_asked_spoils_no_other(read, server):
    assert read(Answer(more=b"more")) == DATA[100:200_100]
    assert read() == DATA[100:200_100]
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("status", "error"), [(403, PermissionError), (404, FileNotFoundError), (400, OSError)]
)
def test_what_will_not_pass_is_said_at_once(read, server, status, error):
    with pytest.raises(error, match=f"^{re.escape(TOLD)}{status} AccessDenied: not yours$"):
        read(Answer(status=status, body=REFUSED))

    assert len(server.asked) == 1


@pytest.mark.parametrize("body", [b"", b"<Code>NoSuchKey</Code>" * 100])
def test_after_a_refusal_the_connection_is_kept(read, server, body):
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            read.end(Answer(status=404, body=body), length=4_080)

    assert len(server.peers) == 1


def test_an_answer_that_is_no_range_is_no_data(read):
    with pytest.raises(OSError, match=f"^{re.escape(TOLD)}200 OK$"):
        read(Answer(status=200))


def test_an_object_that_is_another_one_is_not_mixed_with_the_first(read):
    read()

    with pytest.raises(FileReplacedError, match="300000 bytes when opened, 300000 at the end"):
        read(Answer(etag='"2"'))
    with pytest.raises(FileReplacedError, match="300000 bytes when opened, 299999 at the end"):
        read(Answer(size=299_999))
    with pytest.raises(FileReplacedError):
        read(Answer(gives=150_000), Answer(etag='"2"'))


def test_a_store_that_tells_no_versions_is_read(read):
    assert read(Answer(etag=None)) == DATA[100:200_100]


def test_the_end_of_an_object_is_one_request_and_tells_its_size(read, server):
    found, last = read.end(length=4_080)

    assert (last, found.size_bytes) == (DATA[-4_080:], len(DATA))
    assert [asked for _, asked in server.asked] == ["bytes=-4080"]
    with pytest.raises(FileReplacedError):
        server.script = iter([Answer(etag='"2"')])
        found.fill(0, 10, views_of(bytearray(10)))


@pytest.mark.parametrize("is_whole", [False, True])
def test_an_object_may_be_shorter_than_the_end_that_was_asked_for(read, server, is_whole):
    answer = Answer(size=100, is_whole=is_whole, status=200 if is_whole else 206)
    for _ in range(2):
        found, last = read.end(answer, length=4_080)

        assert (last, found.size_bytes) == (DATA[:100], 100)
    assert len(server.peers) == 1


@pytest.mark.parametrize(
    "answer", [Answer(status=416), Answer(status=200, size=0)], ids=["refused", "all of it"]
)
def test_an_empty_object_has_no_end(read, answer):
    found, last = read.end(answer, length=4_080)

    assert (last, found.size_bytes) == (b"", 0)


def test_an_end_goes_on_where_it_is_broken_off(read, server):
    found, last = read.end(Answer(status=503), Answer(gives=1_000), length=4_080)

    assert (last, found.size_bytes) == (DATA[-4_080:], len(DATA))
    assert [asked for _, asked in server.asked] == [
        *("bytes=-4080", "bytes=-4080"),
        f"bytes={len(DATA) - 3_080}-{len(DATA) - 1}",
    ]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(status=200, is_whole=True), "200 OK"),  # more than was asked for
        (Answer(status=200, is_chunked=True), "200 OK"),
        (Answer(status=403, body=b"<Code>AccessDenied</Code>"), "403 AccessDenied"),
    ],
    ids=["whole", "chunked", "refused"],
)
def test_what_is_no_end_is_said(read, answer, said):
    with pytest.raises(
        OSError, match=f"^s3://bucket/{re.escape(KEY)}, its last 4080 bytes: {said}"
    ):
        read.end(answer, length=4_080)


def test_a_part_that_no_object_has_is_no_empty_object(read):
    with pytest.raises(OSError, match="416"):
        read(Answer(status=416))


def test_a_server_that_is_gone_is_said_without_the_signature(read, server):
    read()
    server.shutdown()
    server.server_close()

    with pytest.raises(OSError, match="tried 5 times") as failed:
        read(*[Answer(gives=0)] * 5)

    assert str(failed.value).startswith(TOLD)
    assert "X-Amz" not in str(failed.value)
    assert "AKIA" not in str(failed.value)


def test_without_credentials_nothing_is_asked(server, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    endpoint = f"http://127.0.0.1:{server.server_port}"
    bucket = S3Bucket("bucket", region="us-east-1", endpoint=endpoint)

    with pytest.raises(PermissionError, match=f"^s3://bucket/{re.escape(KEY)}: .*credentials"):
        S3Object(bucket, KEY, 10).fill(0, 10, iter([memoryview(bytearray(10))]))

    assert server.asked == []


def test_a_bucket_is_made_once_by_threads_that_ask_at_once():
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: s3_bucket("threads", "us-east-1", None), range(8)))

    assert len(found) == 1


def test_a_url_is_signed_anew_before_it_expires(read, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(s3_ranges.time, "monotonic", lambda: now[0])
    signed = []
    real = S3Bucket.signed_url
    monkeypatch.setattr(S3Bucket, "signed_url", lambda *a: signed.append(a) or real(*a))

    for now[0] in (0.0, 1.0, 299.0, 301.0, 302.0):
        read()

    assert len(signed) == 2
