"""Index formats other than Kafka's, through a build."""

from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.tables.catalog import SEGMENTS
from kafka_segments.kafka.index.formats.index_format import IndexFormat
from kafka_segments.kafka.index.formats.kip33_index import Kip33Format
from kafka_segments.kafka.index.formats.minute_index import MinuteFormat
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.time_index import decode_time_index
from kafka_segments.verbs.scan.summary import BuildSummary
from support.logs.strategies import example_e1, v2_batch
from support.spark.stored_builds import build_few, rows_few

BASE, E1 = example_e1()
MINUTE = 60_000


class LivingLog:
    """A log that is built again and again, each time in a format of its own."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self._spark = spark
        self._root = root
        self.log, self.indexes, self.aside = root / "logs" / "t-0", root / "indexes", root / "aside"
        self.log.mkdir(parents=True)

    def build(self, index_format: IndexFormat) -> BuildSummary:
        return build_few(
            self._spark,
            str(self.log.parent),
            str(self._root / "warehouse"),
            recovery=RecoveryOptions(index_interval_bytes=200),
            now_ms=0,
            index_dir=str(self.indexes),
            set_aside=str(self.aside),
            index_format=index_format,
        )

    def formats(self) -> dict[int, str]:
        """Return the format that the table has for each segment."""
        segments = rows_few(self._spark, str(self._root / "warehouse"), SEGMENTS)
        return {row["base_offset"]: row["index_format"] for row in segments}

    def kip33(self) -> list[list[int]]:
        data = (self.indexes / "t-0" / name(BASE, ".timeindex")).read_bytes()
        entries: list[list[int]] = decode_time_index(data, base_offset=BASE).tolist()
        return entries


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def name(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"


@pytest.fixture(scope="module")
def by_minutes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> LivingLog:
    """Two segments, built with minute indexes."""
    living = LivingLog(spark, tmp_path_factory.mktemp("formats"))
    (living.log / name(500, ".log")).write_bytes(v2_batch(500, [(MINUTE, None, b"v")]))
    (living.log / name(BASE, ".log")).write_bytes(E1)
    living.build(MinuteFormat())
    return living


class Changed(NamedTuple):
    """A log of which the first segment is gone, built by KIP-33."""

    living: LivingLog
    minute: bytes
    summary: BuildSummary


@pytest.fixture(scope="module")
def by_kip33(by_minutes: LivingLog) -> Changed:
    minute = (by_minutes.indexes / "t-0" / name(500, ".time.index")).read_bytes()
    (by_minutes.log / name(500, ".log")).unlink()
    return Changed(by_minutes, minute, by_minutes.build(Kip33Format()))


def test_each_segment_has_its_minute_index(by_minutes: LivingLog) -> None:
    assert names(by_minutes.indexes) == [
        name(base, suffix) for base in (500, BASE) for suffix in (".index", ".time.index")
    ]
    minute = (by_minutes.indexes / "t-0" / name(500, ".time.index")).read_bytes()
    assert decode_time_index(minute, base_offset=500).tolist() == [[MINUTE, 500]]


def test_a_minute_index_goes_with_its_segment(by_kip33: Changed) -> None:
    living, minute, changed = by_kip33

    assert (changed.segments_scanned, changed.segments_vanished) == (1, 1)
    assert names(living.indexes) == [
        name(500, ".index"),
        name(BASE, ".index"),
        name(BASE, ".timeindex"),
    ]
    assert names(living.aside) == [name(500, ".time.index"), name(BASE, ".time.index")]
    kept = living.aside / changed.run_id / "t-0" / name(500, ".time.index")
    assert kept.read_bytes() == minute
    assert living.kip33() == [[7002, 1006], [9000, 1010]]


@pytest.mark.slow
def test_kip33_follows_the_next_segment(by_kip33: Changed) -> None:
    living = by_kip33.living
    (living.log / name(1050, ".log")).write_bytes(b"")

    rolled = living.build(Kip33Format())

    assert rolled.segments_scanned == 2
    assert living.kip33() == [[7002, 1006], [9000, 1050]]
    assert living.formats() == {500: "minute", BASE: "kip33", 1050: "kip33"}
