"""Zeros that no broker ever wrote cost nothing, and are no loss, whoever looks at the segment."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_segments.files.storage.local_file import LocalFile
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.change.recovery.forecast.run import (
    Forecast,
    ForecastOptions,
    run_forecast,
)
from kafka_segments.verbs.judge.audit.tasks import AuditScope, SegmentAuditor
from kafka_segments.verbs.scan.scanner import ScanOptions, SegmentScanner
from support.logs.strategies import v2_batch

NAME = f"{0:020d}.log"
MIB = 1024 * 1024
MOST_READ = 4 * MIB  # a few buffers, of a file of 1 GiB


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A killed broker's active segment: 60 batches, and 1 GiB that was allocated for more."""
    log = tmp_path / "logs" / "t-0" / NAME
    log.parent.mkdir(parents=True)
    log.write_bytes(b"".join(v2_batch(n, [(1000 + n, b"k", b"v" * 50)]) for n in range(60)))
    os.truncate(log, 1024 * MIB)
    return log


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The bytes of each read of a local segment."""
    lengths: list[int] = []
    read_into = LocalFile.read_into

    def counted(self: LocalFile, position: int, view: memoryview) -> int:
        filled = read_into(self, position, view)
        lengths.append(filled)
        return filled

    monkeypatch.setattr(LocalFile, "read_into", counted)
    yield lengths


def _forecast(log: Path) -> Forecast:
    options = ForecastOptions(threads=(1,), sources=(str(log.parents[1]),), is_full=True)
    return run_forecast(options)


def test_a_build_reads_what_is_written(log: Path, read: list[int]) -> None:
    scanner = SegmentScanner(ScanOptions(RecoveryOptions(), None))

    scanned = scanner.begin(str(log.parents[1]), "t-0", NAME, 0)()

    assert scanned.recovery is not None
    assert scanned.recovery.batch_count == 60
    assert scanned.damage is not None
    assert scanned.damage.kind == DamageKind.PREALLOCATED_TAIL
    assert sum(read) < MOST_READ


def test_an_audit_reads_what_is_written(log: Path, read: list[int]) -> None:
    auditor = SegmentAuditor(AuditScope(RecoveryOptions(), (4, 3)))
    segment = {
        **dict.fromkeys(("cluster", "log_dir", "topic"), ""),
        **{"broker_id": 1, "partition": 0, "base_offset": 0, "source": str(log.parents[1])},
        **{"relative_path": "t-0", "name": NAME, "is_active": True, "is_clean": False},
        **{"is_recovered": True, "next_base_offset": None, "log_start_offset": None},
        **{"cleaner_offset": None, "has_cleaner_offsets": True},
    }

    rows = list(auditor.audit(segment))

    assert {row["verdict"] for row in rows if "verdict" in row} == {"missing"}
    assert sum(read) < MOST_READ


def test_a_forecast_reads_what_is_written_and_calls_nothing_lost(
    log: Path, read: list[int]
) -> None:
    forecast = _forecast(log)

    [(_, of_log)] = forecast.logs
    assert of_log.findings == ()
    assert sum(read) < MOST_READ


def test_zeros_between_batches_and_preallocation_are_read_as_far_as_they_are_written(
    log: Path, read: list[int]
) -> None:
    with log.open("r+b") as stream:
        stream.seek(8 * MIB)
        stream.write(b"\x01")

    [(_, of_log)] = _forecast(log).logs

    assert [finding.consequence for finding in of_log.findings] == ["cut"]
    assert sum(read) < 8 * MIB + 2 * MOST_READ


def test_a_flipped_count_of_records_is_not_believed(log: Path) -> None:
    os.truncate(log, 60 * len(v2_batch(0, [(1000, b"k", b"v" * 50)])))
    with log.open("r+b") as stream:
        stream.seek(57)  # the count of the first batch's records
        stream.write(b"\x00\xff\x00\x00")

    [(_, of_log)] = _forecast(log).logs

    [finding] = of_log.findings
    assert finding.consequence == "cut"
    assert finding.lost_records == 60
