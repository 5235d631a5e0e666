"""Index formats other than Kafka's, through a build."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.build.summary import BuildSummary
from kafka_segments.index.index_format import IndexFormat
from kafka_segments.index.kip33_index import Kip33Format
from kafka_segments.index.minute_index import MinuteFormat
from kafka_segments.index.recovery import RecoveryOptions
from kafka_segments.index.time_index import decode_time_index
from kafka_segments.tables.catalog import SEGMENTS
from stored_builds import build_few, rows_few
from strategies import example_e1, v2_batch

BASE, E1 = example_e1()
MINUTE = 60_000


@pytest.fixture
def build(spark: SparkSession, tmp_path: Path) -> Callable[[IndexFormat], BuildSummary]:
    def run(index_format: IndexFormat) -> BuildSummary:
        return build_few(
            spark,
            str(tmp_path / "logs"),
            str(tmp_path / "warehouse"),
            recovery=RecoveryOptions(index_interval_bytes=200),
            now_ms=0,
            index_dir=str(tmp_path / "indexes"),
            set_aside=str(tmp_path / "aside"),
            index_format=index_format,
        )

    return run


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def name(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"


def test_a_minute_index_goes_with_its_segment_and_kip33_follows_the_next_segment(
    build: Callable[[IndexFormat], BuildSummary], spark: SparkSession, tmp_path: Path
) -> None:
    logs, indexes, aside = tmp_path / "logs" / "t-0", tmp_path / "indexes", tmp_path / "aside"
    logs.mkdir(parents=True)
    (logs / name(500, ".log")).write_bytes(v2_batch(500, [(MINUTE, None, b"v")]))
    (logs / name(BASE, ".log")).write_bytes(E1)

    build(MinuteFormat())

    assert names(indexes) == [
        name(base, suffix) for base in (500, BASE) for suffix in (".index", ".time.index")
    ]
    minute = (indexes / "t-0" / name(500, ".time.index")).read_bytes()
    assert decode_time_index(minute, base_offset=500).tolist() == [[MINUTE, 500]]

    (logs / name(500, ".log")).unlink()
    changed = build(Kip33Format())

    assert (changed.segments_scanned, changed.segments_vanished) == (1, 1)
    assert names(indexes) == [name(500, ".index"), name(BASE, ".index"), name(BASE, ".timeindex")]
    assert names(aside) == [name(500, ".time.index"), name(BASE, ".time.index")]
    assert (aside / changed.run_id / "t-0" / name(500, ".time.index")).read_bytes() == minute
    assert _kip33(indexes) == [[7002, 1006], [9000, 1010]]

    (logs / name(1050, ".log")).write_bytes(b"")
    rolled = build(Kip33Format())

    assert rolled.segments_scanned == 2
    assert _kip33(indexes) == [[7002, 1006], [9000, 1050]]
    segments = rows_few(spark, str(tmp_path / "warehouse"), SEGMENTS)
    found = {row["base_offset"]: row["index_format"] for row in segments}
    assert found == {500: "minute", BASE: "kip33", 1050: "kip33"}


def _kip33(indexes: Path) -> list[list[int]]:
    data = (indexes / "t-0" / name(BASE, ".timeindex")).read_bytes()
    entries: list[list[int]] = decode_time_index(data, base_offset=BASE).tolist()
    return entries
