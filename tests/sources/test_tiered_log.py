"""Logs and folders of tiered storage: read as their manifests say, never further."""

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.files.changes.index_files import IndexOutput
from kafka_segments.files.folders import kinds
from kafka_segments.files.folders.listing_rows import Listed
from kafka_segments.files.folders.walk import walk_folders
from kafka_segments.files.segments.format_files import Around
from kafka_segments.files.storage.files import open_segment, place
from kafka_segments.kafka.index.formats.kip33_index import Kip33Format, WithoutTimestamps
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan.scanner import Scanned, ScanOptions, SegmentScanner
from support.logs.strategies import v2_batch
from support.stores.object_store import ObjectStore
from support.stores.tiered_objects import OTHER_ID, SEGMENT_ID, TOPIC_ID, put_log, put_segment

FOLDER = f"events-{TOPIC_ID}/7"
LOG = f"{0:020d}-{SEGMENT_ID}.log"
PLAIN = b"".join(v2_batch(n, [(1000 + n, b"k", b"v" * 500)]) for n in range(60))
Scan = Callable[[Path], Scanned]


@pytest.fixture
def scan(tmp_path: Path) -> Scan:
    source = str(tmp_path / "tier")
    output = IndexOutput(str(tmp_path / "indexes"), str(tmp_path / "aside"), {source: ""})
    scanner = SegmentScanner(ScanOptions(RecoveryOptions(), output))

    def run(log: Path) -> Scanned:
        relative_path = str(log.parent.relative_to(source))
        return scanner.begin(source, relative_path, log.name, int(log.name[:20]))()

    return run


def _put(tmp_path: Path, data: bytes = PLAIN, **options: Any) -> Path:
    given: dict[str, Any] = {"end_offset": 59, "max_timestamp_ms": 1059, **options}
    return put_segment(tmp_path / "tier", data, {}, **given)


def _change(log: Path, **values: Any) -> None:
    """Change values of a manifest, by their path with dots as ``__``."""
    file = log.with_suffix(".rsm-manifest")
    manifest = json.loads(file.read_bytes())
    for where, value in values.items():
        *folders, last = where.split("__")
        inner = manifest
        for folder in folders:
            inner = inner[folder]
        inner[last] = value
    file.write_text(json.dumps(manifest))


def _listed(tmp_path: Path, kind: str) -> list[Listed]:
    walked = walk_folders([(str(tmp_path / "tier"), "")])
    return [row for rows in walked.folders for row in rows if row.kind == kind]


def _reasons(tmp_path: Path) -> dict[str, str | None]:
    return {row.name: row.reason for row in _listed(tmp_path, kinds.UNRECOGNIZED)}


# -- the log ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("is_compressed", "kind"),
    [(False, "fixed"), (False, "variable"), (True, "fixed"), (True, "variable")],
)
def test_index_files_are_the_brokers_however_the_log_is_stored(
    scan: Scan, broker: Path, tmp_path: Path, is_compressed: bool, kind: str
) -> None:
    chunk_bytes = 2_000_000 if kind == "fixed" else 65_536
    options = {"is_compressed": is_compressed, "kind": kind, "chunk_bytes": chunk_bytes}

    logs = put_log(tmp_path / "tier", broker, "ct-none-0", **options)
    scanned = [scan(log) for log in logs]

    assert [found.damage for found in scanned] == [None] * 3
    assert [found.size_bytes for found in scanned] == [1_042_721, 1_039_368, 206_103]
    for suffix in (".index", ".timeindex"):
        for log in logs:
            name = log.name[:20] + suffix
            rebuilt = (broker / "rebuilt" / "ct-none-0" / name).read_bytes()
            assert (tmp_path / "indexes" / FOLDER / name).read_bytes() == rebuilt


@pytest.mark.parametrize("step", [1, 99, 100, 101, 100_000])
def test_a_compressed_log_can_be_read_from_anywhere(tmp_path: Path, step: int) -> None:
    log = _put(tmp_path, chunk_bytes=100, kind="variable", is_compressed=True)

    with open_segment(place(str(log))) as opened:
        assert opened.size_bytes == len(PLAIN)
        for position in range(0, len(PLAIN), 977):
            room = bytearray(step)
            read = opened.read_into(position, memoryview(room))
            assert room[:read] == PLAIN[position : position + step]
        assert opened.read_into(len(PLAIN), memoryview(bytearray(5))) == 0


def test_a_log_without_timestamps_has_the_one_that_the_broker_told(
    scan: Scan, tmp_path: Path
) -> None:
    log = _put(tmp_path, max_timestamp_ms=1_650_000_000_000)

    assert scan(log).fallback_ms == 1_650_000_000_000


def test_so_does_kip33s_time_index(tmp_path: Path) -> None:
    log = _put(tmp_path, v2_batch(0, [(-1, b"k", b"v")]), max_timestamp_ms=1_650_000_000_000)
    source = str(tmp_path / "tier")
    output = IndexOutput(str(tmp_path / "indexes"), str(tmp_path / "aside"), {source: ""})
    rule = WithoutTimestamps.MTIME_NEXT
    kip33 = Kip33Format(without_timestamps=rule)

    found = SegmentScanner(ScanOptions(RecoveryOptions(), output, kip33)).begin(
        source, FOLDER, log.name, 0, around=Around(60, 1)
    )()

    (file,) = (tmp_path / "indexes").rglob("*.timeindex")
    assert found.damage is None
    assert int.from_bytes(file.read_bytes()[:8], "big") == 1_650_000_000_000


def _cut(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-10])


def _spoiled(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[:4] = b"xxxx"
    log.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (lambda log: _change(log, encryption={"dataKey": "k:x", "aad": "y"}), "encrypted"),
        (lambda log: _change(log, version="2"), "manifest version 2, only 1 is known"),
        (lambda log: log.with_suffix(".rsm-manifest").unlink(), "an incomplete upload"),
        (lambda log: log.with_suffix(".rsm-manifest").write_bytes(b"{"), "no JSON"),
        (_cut, "the object has"),
        (_spoiled, "zstd: Unknown frame descriptor"),
        (
            lambda log: _change(
                log, chunkIndex__originalChunkSize=2**31 - 1, chunkIndex__originalFileSize=2**31 - 1
            ),
            "at most 134217728 are read",
        ),
        (
            lambda log: _change(
                log, chunkIndex__originalChunkSize=40_000, chunkIndex__originalFileSize=40_000
            ),
            "decompresses to 34260 bytes, 40000 expected",
        ),
        (
            lambda log: _change(
                log, chunkIndex__originalChunkSize=1_000, chunkIndex__originalFileSize=1_000
            ),
            "decompresses to more than 1000 bytes",
        ),
        (
            lambda log: _change(log, chunkIndex__finalTransformedChunkSize=2**31 - 1),
            "2147483647 bytes, says the manifest",
        ),
    ],
    ids=[
        "encrypted", "version", "no manifest", "no JSON", "cut", "no zstd",
        "huge chunks", "too short", "too long", "huge stored",
    ],
)  # fmt: skip
def test_a_log_that_cannot_be_had_is_a_row_that_says_why(
    scan: Scan, tmp_path: Path, fault: Callable[[Path], None], reason: str
) -> None:
    log = _put(tmp_path, chunk_bytes=len(PLAIN), is_compressed=True)
    fault(log)

    scanned = scan(log)

    assert scanned.recovery is None
    assert scanned.damage is not None
    assert scanned.damage.kind == DamageKind.UNREADABLE
    assert reason in scanned.damage.message
    assert not (tmp_path / "indexes").exists()


def test_a_bomb_takes_no_more_memory_than_the_manifest_allows(scan: Scan, tmp_path: Path) -> None:
    log = _put(tmp_path, bytes(200_000_000), chunk_bytes=200_000_000, is_compressed=True)
    _change(log, chunkIndex__originalChunkSize=100_000, chunkIndex__originalFileSize=100_000)

    tracemalloc.start()
    damage = scan(log).damage
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert damage is not None
    assert "decompresses to more than 100000 bytes" in damage.message
    assert most_bytes < 20_000_000


def test_an_uncompressed_log_that_was_cut_is_scanned_as_far_as_it_goes(
    scan: Scan, tmp_path: Path
) -> None:
    log = _put(tmp_path)
    _cut(log)

    scanned = scan(log)

    assert scanned.damage is not None
    assert scanned.damage.kind == DamageKind.PARTIAL_BATCH
    assert scanned.recovery is not None
    assert scanned.recovery.next_offset == 59


# -- the folder ---------------------------------------------------------------------------------


def test_a_partition_is_listed_with_its_topic_and_id(tmp_path: Path) -> None:
    first = _put(tmp_path)
    _put(tmp_path, base_offset=60, end_offset=119, segment_id=OTHER_ID)

    segment, last = _listed(tmp_path, kinds.SEGMENT)
    (log,) = _listed(tmp_path, kinds.LOG)

    assert segment == Listed(
        kind="segment",
        source=str(tmp_path / "tier"),
        relative_path=FOLDER,
        name=LOG,
        log_dir=str(tmp_path / "tier" / f"events-{TOPIC_ID}"),
        topic="events",
        partition=7,
        folder_state="live",
        base_offset=0,
        size_bytes=len(PLAIN),
        mtime_ns=first.stat().st_mtime_ns,
        next_base_offset=60,
    )
    assert (last.base_offset, last.next_base_offset, last.is_active) == (60, None, False)
    assert (log.topic, log.partition, log.topic_id) == ("events", 7, TOPIC_ID)
    assert _reasons(tmp_path) == {}


def test_a_prefix_before_the_topic_is_told_by_a_manifest(tmp_path: Path) -> None:
    log = _put(tmp_path, folder_topic="pre-events")

    assert {row.topic for row in _listed(tmp_path, kinds.SEGMENT)} == {"events"}

    log.with_suffix(".rsm-manifest").write_bytes(b"")
    assert {row.topic for row in _listed(tmp_path, kinds.SEGMENT)} == {"pre-events"}


def test_the_partitions_folder_may_be_the_source(tmp_path: Path) -> None:
    source = str(_put(tmp_path).parent)

    (rows,) = walk_folders([(source, "")]).folders

    assert (rows[0].kind, rows[0].topic, rows[0].partition) == (kinds.SEGMENT, "events", 7)
    assert rows[0].log_dir == source.removesuffix("/7")


def test_what_is_no_whole_segment_is_told(tmp_path: Path) -> None:
    logs = [
        _put(tmp_path, base_offset=base, end_offset=base + 59, segment_id=SEGMENT_ID)
        for base in (0, 60, 120, 180)
    ]
    logs[1].with_suffix(".rsm-manifest").unlink()
    logs[2].unlink()
    logs[3].with_suffix(".indexes").unlink()
    logs[0].with_suffix(".txnindex").write_bytes(b"")
    (logs[0].parent / f"{0:020d}.log").write_bytes(b"")
    (logs[0].parent / "folder").mkdir()

    reasons = _reasons(tmp_path)

    no_manifest = f"an incomplete upload: there is no {logs[1].stem}.rsm-manifest"
    no_log = f"the log of a whole upload is gone: there is no {logs[2].name}"
    assert [row.base_offset for row in _listed(tmp_path, kinds.SEGMENT)] == [0, 180]
    assert reasons.pop(logs[1].name) == no_manifest
    assert reasons.pop(f"{logs[1].stem}.indexes") == no_manifest
    assert reasons.pop(f"{logs[2].stem}.indexes") == no_log
    assert reasons.pop(f"{logs[2].stem}.rsm-manifest") == no_log
    assert "October 2023" in (reasons.pop(f"{logs[0].stem}.txnindex") or "")
    assert "no object of a tiered segment" in (reasons.pop(f"{0:020d}.log") or "")
    assert reasons == {"folder": "a folder inside a partition's folder"}


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        ({"epochs": {5: 0}, "event_ms": 1}, {"epochs": {4: 0}, "event_ms": 9}),
        ({"event_ms": 9}, {"event_ms": 1}),
        ({"event_ms": 9}, {"event_ms": "?"}),
    ],
    ids=["higher epoch", "later upload", "the other is unreadable"],
)
def test_of_two_copies_the_one_that_a_broker_takes_is_the_row(
    tmp_path: Path, mine: dict[str, Any], other: dict[str, Any]
) -> None:
    taken = _put(tmp_path, segment_id=SEGMENT_ID, **mine)
    copy = _put(tmp_path, segment_id=OTHER_ID, **other)

    (segment,) = _listed(tmp_path, kinds.SEGMENT)

    assert segment.name == taken.name
    assert _reasons(tmp_path) == {
        copy.name: f"another copy from offset 0: the row is {taken.name}, of the higher leader"
        " epoch or the later upload"
    }


def test_raw_objects_may_be_named_with_an_id(scan: Scan, tmp_path: Path) -> None:
    folder = tmp_path / "tier" / "events-7"
    folder.mkdir(parents=True)
    names = [f"{0:020d}-{SEGMENT_ID}", f"{60:020d}-{OTHER_ID}"]
    for name in names:
        (folder / f"{name}.log").write_bytes(PLAIN if name == names[0] else b"")
        (folder / f"{name}.index").write_bytes(b"")

    segments = _listed(tmp_path, kinds.SEGMENT)
    scanned = scan(folder / f"{names[0]}.log")

    assert [(row.name, row.base_offset) for row in segments] == [
        (f"{names[0]}.log", 0),
        (f"{names[1]}.log", 60),
    ]
    assert scanned.damage is None
    assert sorted(file.name for file in (tmp_path / "indexes" / "events-7").iterdir()) == [
        f"{0:020d}.index",
        f"{0:020d}.timeindex",
    ]


def test_beside_a_brokers_own_names_those_with_an_id_are_none(tmp_path: Path) -> None:
    folder = tmp_path / "tier" / "events-7"
    folder.mkdir(parents=True)
    (folder / f"{0:020d}.log").write_bytes(PLAIN)
    (folder / LOG).write_bytes(PLAIN)

    assert [row.name for row in _listed(tmp_path, kinds.SEGMENT)] == [f"{0:020d}.log"]
    assert list(_reasons(tmp_path)) == [LOG]


def test_of_raw_copies_the_last_upload_is_the_row(tmp_path: Path) -> None:
    folder = tmp_path / "tier" / "events-7"
    folder.mkdir(parents=True)
    for number, segment_id in enumerate((SEGMENT_ID, OTHER_ID)):
        file = folder / f"{0:020d}-{segment_id}.log"
        file.write_bytes(PLAIN)
        os.utime(file, (1000 - number, 1000 - number))

    assert [row.name for row in _listed(tmp_path, kinds.SEGMENT)] == [LOG]
    assert list(_reasons(tmp_path)) == [f"{0:020d}-{OTHER_ID}.log"]


def test_on_s3_a_manifest_is_read_once_a_partition_and_once_a_log(
    object_store: ObjectStore, broker: Path, tmp_path: Path
) -> None:
    logs = put_log(tmp_path / "tier", broker, "ct-none-0")
    object_store.put_folder(tmp_path / "tier", "unit-tiered/pre")
    scanner = SegmentScanner(ScanOptions(RecoveryOptions(), None))
    object_store.requests.clear()

    walked = walk_folders([("s3://unit-tiered/pre", "")]).folders
    segments = [row for rows in walked for row in rows if row.kind == kinds.SEGMENT]
    listed = [found for found in object_store.requests if found.path.endswith(".rsm-manifest")]
    object_store.requests.clear()
    scanned = [
        scanner.begin(row.source, row.relative_path, row.name, row.base_offset or 0)()
        for row in segments
    ]

    read = [found.method for found in object_store.requests if "manifest" in found.path]
    assert [found.damage for found in scanned] == [None] * len(logs)
    assert [found.method for found in listed] == ["HEAD", "HEAD", "GET"]
    assert sorted(read) == ["GET"] * 3 + ["HEAD"] * 6
