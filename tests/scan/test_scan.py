"""Scanning one segment in a worker: whatever the file does, there is a row."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.files.changes.index_files import IndexOutput
from kafka_segments.files.storage import files_ahead as in_turn
from kafka_segments.files.storage.files import OpenSegment, Place, open_segment
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan import scanner as scan
from kafka_segments.verbs.scan import segment_values
from support.logs.strategies import v2_batch

NAME = f"{0:020d}.log"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    log = tmp_path / "logs" / "t-0" / NAME
    log.parent.mkdir(parents=True)
    log.write_bytes(b"".join(v2_batch(n, [(1000 + n, b"k", b"v" * 5000)]) for n in range(200)))
    return log


@pytest.fixture
def scanner(log: Path, tmp_path: Path) -> scan.SegmentScanner:
    source = str(log.parents[1])
    output = IndexOutput(str(tmp_path / "indexes"), str(tmp_path / "aside"), {source: ""})
    return scan.SegmentScanner(scan.ScanOptions(RecoveryOptions(), output))


def _scan(scanner: scan.SegmentScanner, log: Path) -> scan.Scanned:
    return scanner.begin(str(log.parents[1]), "t-0", NAME, 0)()


def _files(tmp_path: Path) -> list[str]:
    return sorted(file.name for file in (tmp_path / "indexes").rglob("*") if file.is_file())


def test_a_sound_segment_has_its_two_index_files(
    scanner: scan.SegmentScanner, log: Path, tmp_path: Path
) -> None:
    scanned = _scan(scanner, log)

    assert scanned.damage is None
    assert _files(tmp_path) == [f"{0:020d}.index", f"{0:020d}.timeindex"]


def test_the_largest_record_is_known_where_records_are_decoded(log: Path) -> None:
    asked = scan.ScanOptions(RecoveryOptions(), None, has_record_sizes=True)
    log.write_bytes(log.read_bytes() + bytes(4096))  # preallocated

    sound = _scan(scan.SegmentScanner(asked), log).recovery
    log.write_bytes(v2_batch(0, [(1000, b"k", b"v")], payload=b"\x7f"))
    spoilt = _scan(scan.SegmentScanner(asked), log).recovery
    not_asked = _scan(scan.SegmentScanner(asked._replace(has_record_sizes=False)), log).recovery

    assert sound is not None and sound.max_record_bytes == 1 + 1 + 2 + 2 + 5000 + 1
    assert spoilt is not None and spoilt.max_record_bytes is None
    assert not_asked is not None and not_asked.max_record_bytes is None


def test_a_file_that_vanished_since_it_was_listed_is_a_row_without_files(
    scanner: scan.SegmentScanner, log: Path, tmp_path: Path
) -> None:
    log.unlink()

    scanned = _scan(scanner, log)

    assert scanned.damage is not None
    assert (scanned.recovery, scanned.damage.kind) == (None, DamageKind.VANISHED)
    assert _files(tmp_path) == []


@pytest.mark.parametrize("change", ["shrinks", "grows"])
def test_a_file_that_changes_while_it_is_read_is_a_row(
    scanner: scan.SegmentScanner,
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:
    size = log.stat().st_size

    @contextmanager
    def changing(file: Place, **options: Any) -> Iterator[OpenSegment]:
        with open_segment(file, **options) as segment:
            if change == "shrinks":
                os.truncate(log, 300_000)
            else:
                with log.open("ab") as stream:
                    stream.write(v2_batch(200, [(5000, b"k", b"v")]))
            yield segment

    monkeypatch.setattr(in_turn, "open_segment", changing)

    scanned = _scan(scanner, log)

    if change == "grows":
        assert scanned.recovery is not None
        assert (scanned.damage, scanned.recovery.valid_bytes) == (None, size)
        return
    assert scanned.damage is not None
    assert (scanned.recovery, scanned.damage.kind) == (None, DamageKind.CHANGED)
    assert scanned.damage.message == f"the file ends at byte 300000, it had {size} when opened"
    assert _files(tmp_path) == []


def test_a_file_that_may_not_be_read_is_a_row_with_the_systems_reason(
    scanner: scan.SegmentScanner, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Place, **__: Any) -> OpenSegment:
        raise PermissionError(13, "Permission denied", str(log))

    monkeypatch.setattr(in_turn, "open_segment", refused)

    scanned = _scan(scanner, log)

    assert scanned.damage is not None
    assert scanned.damage.kind == DamageKind.NOT_PERMITTED
    assert "Permission denied" in scanned.damage.message


def test_timestamp_types_have_the_names_of_their_numbers() -> None:
    assert segment_values._names((-1, 0, 1), segment_values.TIMESTAMP_TYPES) == [
        "NoTimestampType",
        "CreateTime",
        "LogAppendTime",
    ]


@pytest.mark.parametrize("there", [None, b"of the broker"])
def test_beside_a_log_that_recovery_would_cut_index_files_stay_as_they_are(
    log: Path, tmp_path: Path, there: bytes | None
) -> None:
    """With a sound index a broker that was stopped cleanly never recovers the segment."""
    log.write_bytes(log.read_bytes()[:-1])
    index = log.with_suffix(".index")
    if there is not None:
        index.write_bytes(there)
    output = IndexOutput(None, str(tmp_path / "aside"), {str(log.parents[1]): ""})

    scanned = _scan(scan.SegmentScanner(scan.ScanOptions(RecoveryOptions(), output)), log)

    assert scanned.damage is not None
    assert scanned.damage.kind == DamageKind.PARTIAL_BATCH
    assert (index.read_bytes() if index.exists() else None) == there
    assert not log.with_suffix(".timeindex").exists()


def test_a_segment_is_finished_when_the_next_one_is_begun() -> None:
    told = []

    def begin(number: int) -> Callable[[], scan.Scanned]:
        told.append(f"begin {number}")
        return lambda: told.append(f"finish {number}") or scan.Scanned(None, None, number)

    found = [scanned.size_bytes for scanned in scan.in_turn(map(begin, range(3)))]

    assert found == [0, 1, 2]
    assert told == ["begin 0", "begin 1", "finish 0", "begin 2", "finish 1", "finish 2"]
    assert list(scan.in_turn([])) == []
