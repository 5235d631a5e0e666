"""Questions to tables whose segments were replaced since: what is read is of another log."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.rows.table_reads import read_segments
from kafka_segments.engine.tables.catalog import SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.find.search.log_tables import LogChoice
from kafka_segments.verbs.find.search.run import SearchOptions, run_search
from support.logs.strategies import v2_batch
from support.spark.stored_builds import build_few

pytestmark = pytest.mark.spark

COUNT, FIRST_MS, MADE_AGAIN_MS = 20, 1_000, 500_000
ASKED = (FIRST_MS, FIRST_MS + 15, FIRST_MS + 25)  # first batch, behind an entry, second segment


def _segment(base: int, first_ms: int, *, length: int = 1) -> bytes:
    return b"".join(
        v2_batch(base + n, [(first_ms + base + n, None, b"v" * length)]) for n in range(COUNT)
    )


def _made_again(log: Path) -> None:
    """Write a log of the same names, sizes and mtimes, whose records are of later times."""
    for file in log.glob("*.log"):
        status = file.stat()
        file.write_bytes(_segment(int(file.stem), MADE_AGAIN_MS))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _written_on(log: Path) -> None:
    """Keep the first batch, as a truncation does, and write longer ones behind it."""
    for file in log.glob("*.log"):
        base = int(file.stem)
        first = v2_batch(base, [(FIRST_MS + base, None, b"v")])
        longer = _segment(base, MADE_AGAIN_MS, length=9)
        file.write_bytes(first + longer[len(longer) // COUNT :])


def _grown(log: Path) -> None:
    last = max(log.glob("*.log"))
    last.write_bytes(last.read_bytes() + v2_batch(2 * COUNT, [(MADE_AGAIN_MS, None, b"v")]))


def _touched(log: Path) -> None:
    for file in log.glob("*.log"):
        os.utime(file, (1, 1))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "logs" / "t-0"
    folder.mkdir(parents=True)
    for base in (0, COUNT):
        (folder / f"{base:020d}.log").write_bytes(_segment(base, FIRST_MS))
    return folder


@pytest.fixture
def tables(spark: SparkSession, log: Path, tmp_path: Path) -> Warehouse:
    root = str(tmp_path / "tables")
    build_few(spark, str(log.parent), root, recovery=RecoveryOptions(index_interval_bytes=300))
    return Warehouse(spark, root)


@pytest.mark.parametrize("happens", [_made_again, _written_on, _grown, _touched])
def test_a_search_tells_a_file_that_took_the_place_of_the_one_in_the_tables(
    spark: SparkSession, log: Path, tables: Warehouse, happens: Callable[[Path], None]
) -> None:
    asked = SearchOptions(LogChoice(), (4, 3), tuple((str(ms), ms) for ms in ASKED))
    happens(log)

    with few_rows(spark), ExitStack() as caches:
        rows = run_search(tables, asked, caches).orderBy("target_ms").collect()

    found = [row["true_offset"] for row in rows]
    others = {_made_again: 3, _written_on: 2}.get(happens, 0)
    assert found == [None if ms in ASKED[-others:] and others else ms - FIRST_MS for ms in ASKED]
    why = [row["problem"] for row in rows if row["true_offset"] is None]
    assert None not in why
    assert happens is not _made_again or all(
        "it is another file than the tables" in one for one in why
    )
    assert [row["kafka_offset"] for row in rows] == found


@pytest.mark.parametrize("happens", [_made_again, _grown, _touched])
def test_of_another_file_no_row_is_read(
    spark: SparkSession, log: Path, tables: Warehouse, happens: Callable[[Path], None]
) -> None:
    happens(log)

    with few_rows(spark):
        segments = tables.read(SEGMENTS)
        read = read_segments(rows="records", columns=("offset", "error"), check="full")
        rows = segments.transform(read).collect()

    errors = [row["error"] for row in rows if row["error"] is not None]
    expected = {_made_again: (2, 2), _grown: (2 * COUNT + 1, 0), _touched: (2 * COUNT, 0)}[happens]
    assert (len(rows), len(errors)) == expected
    assert all("it is another file than the tables tell of" in error for error in errors)
