"""Files on S3: few large reads, objects that appear whole, nothing replaced without a way back."""

import random
import time
from collections import Counter
from math import ceil
from urllib.request import Request, urlopen
from zlib import crc32

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from kafka_segments.errors import UsageError
from kafka_segments.files.changes.index_files import IndexOutput, IndexPublisher
from kafka_segments.files.delta.rows import read_small_table
from kafka_segments.files.folders.kinds import UNRECOGNIZED
from kafka_segments.files.folders.source_folder import list_source_folder
from kafka_segments.files.folders.walk import find_segments
from kafka_segments.files.storage import stores
from kafka_segments.files.storage.files import open_segment, place, read_whole
from kafka_segments.files.storage.publishing import publish
from kafka_segments.files.storage.range_concurrency import LARGEST_READ_BYTES
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.change.compact.stale_builds import remove_stale_builds
from kafka_segments.verbs.scan.scanner import ScanOptions, SegmentScanner
from support.stores.cached_stores import forget_stores

MIB = 1024 * 1024
BASE = 1000
INDEX = "00000000000000001000.index"


@pytest.fixture
def bucket(object_store, request):
    """A bucket of the test's own; requests are counted from here."""
    name = f"unit-{crc32(request.node.name.encode())}"
    object_store.files.create_dir(name)
    object_store.requests.clear()
    yield name
    object_store.refuses = lambda _: False


@pytest.fixture
def impatient(monkeypatch):
    """Refusals are taken for an answer sooner."""
    monkeypatch.setattr(stores, "_MOST_TRIES", 2)
    forget_stores()
    yield
    forget_stores()


def read_whole_by(file, step, size):
    data = bytearray(size)
    with open_segment(file) as opened:
        for position in range(0, size, step):
            view = memoryview(data)[position : position + step]
            assert opened.read_into(position, view) == len(view)
    return data


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_key_cannot_lead_out_of_the_index_folder(object_store, bucket, name):
    key = f"logs/{name}/evil-0/{BASE:020d}.log"
    urlopen(Request(f"{object_store.endpoint}/{bucket}/{key}", b"x", method="PUT")).close()
    object_store.put(f"{bucket}/logs/t-0/{BASE:020d}.log", b"x")
    source = f"s3://{bucket}/logs"

    found = find_segments([source])
    rows = [row for row in list_source_folder(source, "") if row.kind == UNRECOGNIZED]

    assert [segment.relative_path for segment in found.segments] == ["t-0"]
    assert [row.name for row in rows] == [name]
    assert rows[0].reason is not None and repr(name) in rows[0].reason


def test_a_uri_with_dots_is_refused():
    with pytest.raises(UsageError, match="taken as names"):
        absolute_uri("s3://bucket/logs/../others")


@pytest.mark.parametrize("step", [4 * MIB, 64 * 1024], ids=["whole chunks", "headers"])
def test_a_file_is_read_in_few_large_pieces(object_store, bucket, step):
    size = 41 * MIB + 123
    data = random.Random(1).randbytes(size)
    object_store.put(f"{bucket}/x.log", data)
    object_store.requests.clear()

    read = read_whole_by(place(f"s3://{bucket}/x.log"), step, size)

    assert read == data
    grows = 2 if step >= MIB else 6
    assert len(object_store.read_of(f"{bucket}/x.log")) <= ceil(size / LARGEST_READ_BYTES) + grows


def test_reads_that_jump_and_go_back_give_the_same_bytes(object_store, bucket):
    draw = random.Random(2)
    size = 20 * MIB
    data = draw.randbytes(size)
    object_store.put(f"{bucket}/x.log", data)

    with open_segment(place(f"s3://{bucket}/x.log")) as opened:
        position = 0
        for _ in range(60):
            length = draw.choice([0, 1, 61, 64 * 1024, 4 * MIB, 9 * MIB])
            view = bytearray(length)
            read = opened.read_into(position, memoryview(view))
            assert view[:read] == data[position : position + length]
            assert read == len(data[position : position + length])
            position = max(0, position + draw.choice([length, length - 1000, length + 10**6]))
            position = position if position < size + 10 else draw.randrange(size)


def test_a_look_at_a_few_bytes_reads_few(object_store, bucket):
    object_store.put(f"{bucket}/x.log", bytes(30 * MIB))
    object_store.requests.clear()

    with open_segment(place(f"s3://{bucket}/x.log")) as opened:
        opened.read_into(5 * MIB, memoryview(bytearray(8192)))

    (request,) = object_store.read_of(f"{bucket}/x.log")
    assert request.ranged == f"bytes={5 * MIB}-{5 * MIB + 256 * 1024 - 1}"


def test_a_segment_is_recovered_as_from_a_disk(object_store, bucket, broker):
    log = next(
        iter(sorted((broker / "logs").rglob("*.log"), key=lambda path: -path.stat().st_size))
    )
    object_store.put(f"{bucket}/t-0/{log.name}", log.read_bytes())
    recoverer, found = SegmentRecoverer(RecoveryOptions()), []

    for file in (str(log), f"s3://{bucket}/t-0/{log.name}"):
        with open_segment(place(file)) as opened:
            recovery = recoverer.recover(
                opened.read_into, size_bytes=opened.size_bytes, base_offset=int(log.stem)
            )
        found.append((recovery.valid_bytes, recovery.offset_entries.tolist()))

    assert found[0] == found[1]


def test_an_object_that_goes_while_it_is_read_is_not_found(object_store, bucket):
    object_store.put(f"{bucket}/x.log", bytes(MIB))

    with open_segment(place(f"s3://{bucket}/x.log")) as opened:
        object_store.files.delete_file(f"{bucket}/x.log")
        told = f"s3://{bucket}/x.log, bytes 0 to {MIB - 1}: 404 NoSuchKey: .*"
        with pytest.raises(FileNotFoundError, match=f"^{told}$"):
            opened.read_into(0, memoryview(bytearray(MIB)))


@pytest.mark.parametrize("size", [100, 2 * MIB])
def test_an_object_that_is_replaced_while_it_is_read_is_a_row_and_gives_no_files(
    object_store, bucket, monkeypatch, size
):
    key = f"{bucket}/logs/t-0/00000000000000000000.log"
    object_store.put(key, bytes(MIB))
    real = SegmentRecoverer.recover

    def recover(*args, **named):
        recovery = real(*args, **named)
        object_store.put(key, bytes(size))
        return recovery

    monkeypatch.setattr(SegmentRecoverer, "recover", recover)
    source = f"s3://{bucket}/logs"
    output = IndexOutput(f"s3://{bucket}/indexes", f"s3://{bucket}/aside", {source: ""})

    scanned = SegmentScanner(ScanOptions(RecoveryOptions(), output)).begin(
        source, "t-0", "00000000000000000000.log", 0
    )()

    assert scanned.recovery is None
    assert scanned.damage is not None
    assert scanned.damage.kind == DamageKind.CHANGED
    assert scanned.damage.message == (
        f"it was replaced while it was read: {MIB} bytes when opened, {size} at the end"
    )
    assert object_store.objects(f"{bucket}/indexes") == {}


@pytest.mark.parametrize("size", [10, 1000])  # shorter and longer than the refusal's own text
def test_a_read_that_is_refused_for_a_while_is_tried_again(object_store, bucket, size):
    object_store.put(f"{bucket}/x.log", bytes(size))
    refused = iter([True, True])
    object_store.refuses = lambda request: request.ranged is not None and next(refused, False)

    assert read_whole_by(place(f"s3://{bucket}/x.log"), size, size) == bytes(size)
    assert read_whole(place(f"s3://{bucket}/x.log"), most_bytes=size) == bytes(size)


@pytest.mark.slow
def test_a_table_whose_files_are_refused_or_cut_off_at_times_is_read(
    object_store, bucket, tmp_path
):
    rows = pa.table({"id": list(range(1000)), "name": [f"n-{number}" for number in range(1000)]})
    for _ in range(3):
        write_deltalake(tmp_path / "table", rows, mode="append")
    DeltaTable(tmp_path / "table").create_checkpoint()
    object_store.put_folder(tmp_path / "table", f"{bucket}/table")
    asked = Counter()

    def is_first(request):
        asked[request] += 1
        return request.ranged is not None and asked[request] == 1

    object_store.cuts_off = is_first
    cut = read_small_table(f"s3://{bucket}/table", ("name",), most_bytes=1 << 20)
    object_store.cuts_off = lambda _: False
    asked.clear()
    object_store.refuses = is_first
    refused = read_small_table(f"s3://{bucket}/table", ("name",), most_bytes=1 << 20)

    assert cut == refused == rows.select(["name"]).to_pylist() * 3
    assert max(asked.values()) >= 2


def test_a_listing_that_is_refused_for_a_while_is_tried_again(object_store, bucket):
    object_store.put(f"{bucket}/logs/t-0/00000000000000000000.log", b"")
    refused = iter([True, True])
    object_store.refuses = lambda request: request.path == f"/{bucket}" and next(refused, False)

    assert len(find_segments([f"s3://{bucket}/logs"]).segments) == 1


def test_a_folder_whose_listing_is_refused_is_named(object_store, bucket, impatient):
    object_store.put(f"{bucket}/logs/t-0/00000000000000000000.log", b"")
    object_store.refuses = lambda request: "t-0" in request.query

    found = find_segments([f"s3://{bucket}/logs"])

    (unlisted,) = found.unlisted
    assert (unlisted.path, unlisted.topic) == (f"s3://{bucket}/logs/t-0", "t")
    assert "AWS Error SLOW_DOWN" in unlisted.reason


def test_segments_of_many_folders_are_found_by_one_request_a_folder(object_store, bucket):
    for partition in range(40):
        object_store.put(f"{bucket}/logs/t-{partition}/00000000000000000000.log", b"")
    object_store.requests.clear()

    found = find_segments([f"s3://{bucket}/logs"])

    assert [segment.partition for segment in found.segments] == sorted(range(40), key=str)
    assert len(object_store.requests) == 41


def test_published_objects_are_single_requests_and_their_folders_are_not_made(object_store, bucket):
    output = IndexOutput(f"s3://{bucket}/indexes", f"s3://{bucket}/aside", {"s3://x/logs": ""})

    IndexPublisher(output).publish("s3://x/logs", "t-0", BASE, {".index": b"12345678"})

    assert object_store.objects(bucket) == {f"indexes/t-0/{INDEX}": b"12345678"}
    assert [request.method for request in object_store.requests[:2]] == ["HEAD", "PUT"]


def test_what_is_replaced_or_withdrawn_is_set_aside(object_store, bucket):
    output = IndexOutput(f"s3://{bucket}/indexes", f"s3://{bucket}/aside", {"s3://x/logs": ""})
    for data in (b"12345678", b"12345678", b"87654321", None):
        IndexPublisher(output).publish("s3://x/logs", "t-0", BASE, {".index": data})

    assert object_store.objects(bucket) == {f"aside/t-0/{INDEX}": b"12345678"}


def test_an_upload_that_is_refused_shows_no_object(object_store, bucket, impatient):
    object_store.refuses = lambda request: request.method in ("PUT", "POST")

    with pytest.raises(OSError, match="AWS Error"):
        publish(place(f"s3://{bucket}/x.index"), b"12345678")

    object_store.refuses = lambda _: False
    assert object_store.objects(bucket) == {}


def test_names_below_a_source_are_taken_as_they_stand(object_store, bucket):
    name = "a%20b c+d&e#f"
    object_store.put(f"{bucket}/{name}/t-0/00000000000000000000.log", b"")

    found = find_segments([absolute_uri(f"s3://{bucket}/{name}")])

    (segment,) = found.segments
    assert segment.path == f"s3://{bucket}/{name}/t-0/00000000000000000000.log"
    with open_segment(place(segment.path)) as opened:
        assert opened.size_bytes == 0


def test_a_source_that_is_not_there_says_so(object_store, bucket):
    with pytest.raises(UsageError, match="does not exist"):
        find_segments([f"s3://{bucket}/gone"])


def test_what_a_killed_build_left_is_removed_once_its_newest_object_is_a_week_old(
    object_store, bucket
):
    for name in ("offset_index/a.parquet", "time_index/a.parquet"):
        object_store.put(f"{bucket}/tables/_entries/killed/{name}", b"PAR1")
    written_ms = int(time.time() * 1000)

    def remove(days, *, dry_run=False):
        now_ms = written_ms + days * 86_400_000
        return remove_stale_builds(f"s3a://{bucket}/tables", now_ms=now_ms, dry_run=dry_run)

    assert remove(6) == []
    assert remove(8, dry_run=True) == ["killed"]
    assert len(object_store.objects(f"{bucket}/tables/_entries")) == 2
    assert remove(8) == ["killed"]
    assert object_store.objects(f"{bucket}/tables/_entries") == {}
    assert remove(8) == []


def test_on_a_disk_a_day_is_enough(tmp_path):
    file = tmp_path / "_entries" / "killed" / "offset_index" / "a.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"PAR1")
    written_ms = file.stat().st_mtime_ns // 10**6

    def remove(hours):
        now_ms = written_ms + hours * 3_600_000
        return remove_stale_builds(str(tmp_path), now_ms=now_ms, dry_run=False)

    assert remove(23) == []
    assert remove(25) == ["killed"]
    assert not (tmp_path / "_entries" / "killed").exists()
