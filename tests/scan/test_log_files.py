"""What crosses segments, on a real Spark: transactions, snapshots, epochs, the loader modes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.tables.catalog import OFFSET_INDEX, SEGMENTS, Table
from kafka_segments.kafka.index.log.loading import RecoveryMode
from kafka_segments.kafka.index.log.snapshots import decode_snapshot
from kafka_segments.verbs.scan.summary import BuildSummary
from support.kafka.kafka_referee import Referee
from support.kafka.side_by_side import loaded_by_kafka
from support.spark.stored_builds import build_few, rows_few

NOW_MS = 1_700_003_600_000  # the referee's clock
TRANSACTIONS = "v2-txn-interleaved-multi-segment"
CORRUPT = "multi-segment-corrupt-middle"
SPLIT = "a-split-segment"


@pytest.fixture
def build(spark: SparkSession, tmp_path: Path) -> Callable[..., BuildSummary]:
    def run(source: Path, mode: RecoveryMode, **options: object) -> BuildSummary:
        asked = {"index_dir": str(tmp_path / "indexes"), "now_ms": NOW_MS, **options}
        warehouse = str(tmp_path / "warehouse")
        return build_few(spark, str(source), warehouse, mode=mode, **asked)

    return run


@pytest.fixture
def rows(spark: SparkSession, tmp_path: Path) -> Callable[[Table], list[dict[str, Any]]]:
    """The rows of a table by base offset."""

    def read(table: Table) -> list[dict[str, Any]]:
        found = rows_few(spark, str(tmp_path / "warehouse"), table)
        return sorted(found, key=lambda row: row["base_offset"])

    return read


def _comparable(folder: Path) -> dict[str, object]:
    """All files but the logs; snapshots by content, an empty .txnindex as none."""
    return {
        str(file.relative_to(folder)): decode_snapshot(data) if file.suffix == ".snapshot" else data
        for file in (folder.rglob("*") if folder.is_dir() else ())
        if file.is_file() and file.suffix != ".log"
        for data in [file.read_bytes()]
    }


def _cases(synthetic: Path) -> list[Path]:
    default = {"index.interval.bytes": 4096, "segment.index.bytes": 10485760}
    cases = sorted(path.parent for path in synthetic.glob("*/case.json"))
    return [
        case for case in cases if json.loads((case / "case.json").read_text())["config"] == default
    ]


class Loaded(NamedTuple):
    """What one build made of several logs, each in a folder of its own."""

    mode: RecoveryMode
    logs: Path
    indexes: Path


@pytest.fixture(scope="module", params=[RecoveryMode.LOADER_UNCLEAN, RecoveryMode.LOADER_MISSING])
def loaded(
    spark: SparkSession,
    synthetic: Path,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Loaded:
    """All synthetic cases of the default settings, and a log of which a segment is split."""
    folder = tmp_path_factory.mktemp("loaded")
    logs, indexes = folder / "logs", folder / "indexes"
    for case in _cases(synthetic):
        shutil.copytree(case / "t-0", logs / case.name / "t-0")
    shutil.copytree(synthetic / TRANSACTIONS / "t-0", logs / SPLIT / "t-0")
    _first, middle, last = sorted((logs / SPLIT / "t-0").iterdir())
    _set_last_offset(middle, 2**40)
    _set_last_offset(last, 2**41)
    asked = {"mode": request.param, "index_dir": str(indexes), "now_ms": NOW_MS}
    build_few(spark, str(logs), str(folder / "warehouse"), **asked)
    return Loaded(request.param, logs, indexes)


def test_every_file_of_every_synthetic_case_is_what_the_loader_leaves(
    synthetic: Path, loaded: Loaded
) -> None:
    expected = {
        case.name: _comparable(case / "expected" / loaded.mode) for case in _cases(synthetic)
    }

    assert {name: _comparable(loaded.indexes / name / "t-0") for name in expected} == expected


def test_pieces_of_a_split_segment_are_folded_where_their_offsets_belong(
    loaded: Loaded, referee: Referee, tmp_path: Path
) -> None:
    copied = shutil.copytree(loaded.logs / SPLIT / "t-0", tmp_path / "kafka" / "t-0")
    kafkas = loaded_by_kafka(referee, copied, loaded.mode)

    mine = _comparable(loaded.indexes / SPLIT / "t-0")
    pieces = {name for name in kafkas if name.endswith(".timeindex")}
    assert pieces == {f"{offset:020d}.timeindex" for offset in (0, 121, 239, 2**40, 2**41)}
    assert mine == kafkas


def _set_last_offset(log: Path, offset: int) -> None:
    """Set the base offset of the last batch; no checksum covers it."""
    data = bytearray(log.read_bytes())
    positions = [0]
    while positions[-1] < len(data):
        size = int.from_bytes(data[positions[-1] + 8 : positions[-1] + 12], "big")
        positions.append(positions[-1] + 12 + size)
    position = positions[-2]
    data[position : position + 8] = offset.to_bytes(8, "big")
    log.write_bytes(data)


@pytest.mark.slow
def test_a_new_segment_is_folded_with_the_summaries_of_those_read_before(
    synthetic: Path,
    build: Callable[..., BuildSummary],
    rows: Callable[[Table], list[dict[str, Any]]],
    tmp_path: Path,
) -> None:
    case = synthetic / TRANSACTIONS
    logs = tmp_path / "logs" / "t-0"
    shutil.copytree(case / "t-0", logs)
    last = max(logs.iterdir())
    shutil.move(last, tmp_path / last.name)
    build(tmp_path / "logs", RecoveryMode.LOADER_MISSING)
    shutil.move(tmp_path / last.name, last)

    summary = build(tmp_path / "logs", RecoveryMode.LOADER_MISSING)

    expected = _comparable(case / "expected" / "loader-missing")
    assert (summary.segments_scanned, summary.segments_unchanged) == (1, 2)
    assert _comparable(tmp_path / "indexes" / "t-0") == expected
    aborted = [row["txn_index_entries"] for row in rows(SEGMENTS)]
    files = sorted(name for name in expected if name.endswith(".txnindex"))
    assert aborted == [len(expected[name]) // 34 for name in files]


@pytest.mark.slow
def test_an_earlier_segment_that_changes_changes_the_index_of_a_later_one(
    synthetic: Path,
    build: Callable[..., BuildSummary],
    rows: Callable[[Table], list[dict[str, Any]]],
    tmp_path: Path,
) -> None:
    logs = tmp_path / "logs" / "t-0"
    shutil.copytree(synthetic / TRANSACTIONS / "t-0", logs)
    build(tmp_path / "logs", RecoveryMode.SEGMENT)
    before = _comparable(tmp_path / "indexes" / "t-0")
    min(logs.iterdir()).unlink()

    summary = build(tmp_path / "logs", RecoveryMode.SEGMENT)

    after = _comparable(tmp_path / "indexes" / "t-0")
    second = sorted(name for name in before if name.endswith(".txnindex"))[1]
    assert (summary.segments_scanned, summary.segments_vanished) == (0, 1)
    assert before[second] != after[second]
    (row,) = [row for row in rows(SEGMENTS) if row["base_offset"] == int(second[:20])]
    assert row["txn_index_entries"] == len(after[second]) // 34


@pytest.mark.slow
def test_segments_after_a_truncated_one_are_rows_that_say_so_and_come_back_when_it_is_sound(
    synthetic: Path,
    build: Callable[..., BuildSummary],
    rows: Callable[[Table], list[dict[str, Any]]],
    tmp_path: Path,
) -> None:
    logs = tmp_path / "logs" / "t-0"
    shutil.copytree(synthetic / CORRUPT / "t-0", logs)
    names = sorted(file.name for file in logs.iterdir())

    summary = build(tmp_path / "logs", RecoveryMode.LOADER_UNCLEAN)
    segments = rows(SEGMENTS)
    indexed = {row["base_offset"] for row in rows(OFFSET_INDEX)}

    assert summary.segments_damaged == 2
    assert [row["damage"] and row["damage"]["kind"] for row in segments] == [
        None,
        "corrupt_batch",
        "removed_after_truncation",
    ]
    assert segments[2]["index_entries"] is None
    assert int(names[2][:20]) not in indexed

    valid_bytes = segments[1]["valid_bytes"]
    log = logs / names[1]
    log.write_bytes(log.read_bytes()[:valid_bytes])
    again = build(tmp_path / "logs", RecoveryMode.LOADER_UNCLEAN)

    assert again.segments_damaged == 0
    assert [row["damage"] for row in rows(SEGMENTS)] == [None] * 3
    assert (tmp_path / "indexes" / "t-0" / names[2]).with_suffix(".index").exists()


def test_without_a_folder_for_files_the_tables_still_say_what_the_fold_found(
    synthetic: Path,
    build: Callable[..., BuildSummary],
    rows: Callable[[Table], list[dict[str, Any]]],
    tmp_path: Path,
) -> None:
    shutil.copytree(synthetic / TRANSACTIONS / "t-0", tmp_path / "logs" / "t-0")

    build(tmp_path / "logs", RecoveryMode.SEGMENT, index_dir=None)

    assert min(row["txn_index_entries"] for row in rows(SEGMENTS)) > 0
