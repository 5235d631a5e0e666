"""Rows of ``rows=records`` against Kafka's own record classes, for every magic and codec."""

import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.rows.datasource import register
from support.kafka.kafka_referee import Referee

GENERATED = 30
PARTS = 3
KINDS = ("v2", "legacy", "mixed")
COLUMNS = "path,offset,timestamp_ms,key,value,headers,error"


@pytest.fixture(scope="module", autouse=True)
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Register the data source, and read nothing: what that starts for the first time takes 4 s."""
    register(spark)
    empty = str(tmp_path_factory.mktemp("empty"))
    assert not spark.read.format("kafka_segments").load(empty).collect()


def _hex(data: bytes | None) -> str:
    return "-" if data is None else data.hex()


def _lines(rows: pa.Table) -> dict[str, list[str]]:
    """Give our rows by file as ``Referee.records`` writes them; damage at the end is left out."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in _plain(rows):
        if row["error"] is not None:
            continue
        headers = [part for one in row["headers"] for part in (one["key"].encode(), one["value"])]
        texts = map(_hex, (row["key"], row["value"], *headers))
        found[row["path"]].append(" ".join([str(row["offset"]), str(row["timestamp_ms"]), *texts]))
    return found


def _plain(rows: pa.Table) -> Iterator[dict]:
    for batch in rows.to_batches():
        yield from batch.to_pylist()


def _ours(spark: SparkSession, *sources: Path) -> dict[str, list[str]]:
    records = spark.read.format("kafka_segments").options(rows="records", columns=COLUMNS, tasks=4)
    return _lines(records.load([str(source) for source in sources]).toArrow())


def _kafkas(referee: Referee, partition: Path, scratch: Path) -> dict[str, list[str]]:
    """Give what Kafka reads of each segment, cut first as its recovery cuts it."""
    copy = scratch / "recovered" / partition.name
    shutil.copytree(partition, copy)
    found = {}
    for answer in referee.recover(copy):
        if "threw" in answer or "caught" in answer:
            continue
        name = f"{answer['baseOffset']:020d}.log"
        referee.records(copy / name, scratch / "lines")
        found[str(partition / name)] = (scratch / "lines").read_text().splitlines()
    shutil.rmtree(copy)
    return found


def _differences(
    ours: dict[str, list[str]], kafkas: dict[str, list[str]]
) -> dict[str, tuple[int, str, str]]:
    differences = {}
    for path, lines in kafkas.items():
        if ours[path] == lines:
            continue
        pairs = zip([*ours[path], "end"], [*lines, "end"], strict=False)
        number, (mine, kafkas_line) = next(
            (number, pair) for number, pair in enumerate(pairs) if pair[0] != pair[1]
        )
        differences[path] = (number, mine[:300], kafkas_line[:300])
    return differences


@pytest.mark.slow
def test_golden_segments_have_every_format_and_codec(
    spark: SparkSession, synthetic: Path, broker: Path
) -> None:
    batches = spark.read.format("kafka_segments").load([str(synthetic), str(broker / "logs")])

    found = batches.where("error IS NULL").select("magic", "codec").distinct().collect()

    legacy = {(magic, codec) for magic in (0, 1) for codec in ("none", "gzip", "snappy", "lz4")}
    v2 = {(2, codec) for codec in ("none", "gzip", "snappy", "lz4", "zstd")}
    assert legacy | v2 <= {tuple(row) for row in found}


@pytest.mark.parametrize("part", range(PARTS))
def test_rows_are_kafkas_records_on_every_golden_segment(
    spark: SparkSession,
    referee: Referee,
    synthetic: Path,
    broker: Path,
    tmp_path: Path,
    part: int,
) -> None:
    partitions = sorted([*synthetic.glob("*/t-0"), *(broker / "logs").iterdir()])[part::PARTS]
    kafkas = {}
    for partition in partitions:
        kafkas.update(_kafkas(referee, partition, tmp_path))

    ours = _ours(spark, *partitions)

    assert len(kafkas) > 20
    assert _differences(ours, kafkas) == {}


@pytest.mark.parametrize("is_damaged", [False, True])
def test_rows_are_kafkas_records_on_segments_made_afresh(
    spark: SparkSession, referee: Referee, tmp_path: Path, is_damaged: bool, seed: int
) -> None:
    kafkas = {}
    for number in range(GENERATED):
        source = tmp_path / "logs" / f"{number}"
        partition = referee.generate(source, seed + number, KINDS[number % 3])
        if is_damaged:
            referee.damage(partition, seed + number)
        kafkas.update(_kafkas(referee, partition, tmp_path))

    ours = _ours(spark, tmp_path / "logs")

    assert _differences(ours, kafkas) == {}
