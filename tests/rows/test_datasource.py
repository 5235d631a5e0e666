"""``spark.read.format("kafka_segments")`` on a real Spark."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertSchemaEqual

from kafka_segments.engine.rows.datasource import register
from kafka_segments.engine.tables.schemas import schema
from support.logs.strategies import v0_message, v2_batch
from support.model.plain_decoder import plain_records, positions

Load = Callable[..., DataFrame]


@pytest.fixture(scope="module", autouse=True)
def _registered(spark: SparkSession) -> None:
    register(spark)


@pytest.fixture
def load(spark: SparkSession) -> Load:
    def run(path: Path | list[str], **options: object) -> DataFrame:
        reader = spark.read.format("kafka_segments").options(**options)  # type: ignore[arg-type]
        return reader.load(path if isinstance(path, list) else str(path))

    return run


def _segments(root: Path) -> list[tuple[str, int, bytes]]:
    """Give (topic, partition, log) of all segments of a log directory."""
    found = []
    for path in sorted(root.glob("*/*.log")):
        topic, _, partition = path.parent.name.rpartition("-")
        found.append((topic, int(partition), path.read_bytes()))
    return found


def _write(log_dir: Path, partition: str, base_offset: int, log: bytes) -> None:
    (log_dir / partition).mkdir(parents=True, exist_ok=True)
    (log_dir / partition / f"{base_offset:020d}.log").write_bytes(log)


@pytest.mark.slow
def test_a_batch_is_a_row(load: Load, broker: Path) -> None:
    expected = [
        (topic, partition, begin, end - begin, int.from_bytes(log[begin : begin + 8], "big"))
        for topic, partition, log in _segments(broker / "logs")
        for begin, end in positions(log)
    ]

    batches = load(broker / "logs")

    found = batches.select("topic", "partition", "position", "size_bytes", "base_offset")
    assert sorted(map(tuple, found.collect())) == sorted(expected)
    assertSchemaEqual(batches.schema, schema("kafka_segments_batches.v1"))
    assert batches.where("error IS NOT NULL OR magic <> 2").count() == 0


def test_a_record_is_a_row(load: Load, broker: Path) -> None:
    expected = [
        (topic, partition, *record[:5])
        for topic, partition, log in _segments(broker / "logs")
        for record in plain_records(log)
    ]

    records = load(broker / "logs", rows="records")

    found = records.select(
        "topic", "partition", "batch_position", "offset", "timestamp_ms", "key", "value"
    )
    rows = [(*row[:5], *(value and bytes(value) for value in row[5:])) for row in found.collect()]
    assert sorted(rows, key=str) == sorted(expected, key=str)
    assertSchemaEqual(records.schema, schema("kafka_segments_records.v1"))


def test_a_partition_is_read_in_the_order_of_its_log(load: Load, broker: Path) -> None:
    records = load(broker / "logs" / "ct-codecs-0", rows="records", columns="offset", tasks=1)

    offsets = [row.offset for row in records.collect()]

    assert offsets == list(range(2068))


CONDITIONS = [
    "topic = 'ct-codecs'",
    "topic LIKE 'ct-two%' AND partition = 1",
    "offset BETWEEN 1500 AND 1700",
    "offset = 1600 OR offset = 2",
    "timestamp_ms >= 1700000030000",
    "timestamp_ms < 1700000003000 AND NOT topic = 'txn'",
    "offset > 100000",
    "is_control",
]
FEW_COLUMNS = "topic,partition,offset,timestamp_ms,is_control"


@pytest.fixture(scope="module")
def everything(spark: SparkSession, broker: Path) -> DataFrame:
    reader = spark.read.format("kafka_segments").options(rows="records", columns=FEW_COLUMNS)
    records = reader.load(str(broker / "logs"))
    return spark.createDataFrame(records.collect(), records.schema)


def _rows(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_one_load_serves_many_filters(
    load: Load, everything: DataFrame, broker: Path, part: int
) -> None:
    records = load(broker / "logs", rows="records", columns=FEW_COLUMNS)

    for condition in CONDITIONS[part::3]:
        assert _rows(records.where(condition)) == _rows(everything.where(condition)), condition


def test_one_load_serves_many_branches_of_a_query(
    load: Load, everything: DataFrame, broker: Path
) -> None:
    records = load(broker / "logs", rows="records", columns=FEW_COLUMNS)

    branches = [records.where(condition) for condition in CONDITIONS[:2]]

    assert branches[0].union(branches[1]).union(records).count() == sum(
        frame.count()
        for frame in (everything, *(everything.where(condition) for condition in CONDITIONS[:2]))
    )


@pytest.mark.parametrize("part", range(3))
def test_with_pushdown_a_load_of_its_own_gives_the_same(
    load: Load, everything: DataFrame, broker: Path, part: int
) -> None:
    for condition in CONDITIONS[part::3]:
        records = load(broker / "logs", rows="records", columns=FEW_COLUMNS, pushdown="true")

        assert _rows(records.where(condition)) == _rows(everything.where(condition)), condition


def test_spark_still_keeps_pushed_filters(load: Load, tmp_path: Path) -> None:
    """Where this fails, Spark has been mended: pushdown can be the default."""
    _write(tmp_path, "t-0", 0, v2_batch(0, [(0, None, b"a")] * 3))
    records = load(tmp_path, rows="records", pushdown="true")

    assert records.where("offset > 50").count() == 0
    assert records.count() == 0


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"topic": "ct-codecs, txn", "partition": 0}, "topic IN ('ct-codecs', 'txn')"),
        ({"min_offset": 1500, "max_offset": 1700}, "offset BETWEEN 1500 AND 1700"),
        (
            {"min_timestamp_ms": 1700000003000, "max_timestamp_ms": 1700000005000},
            "timestamp_ms BETWEEN 1700000003000 AND 1700000005000",
        ),
        ({"topic": ""}, "false"),
    ],
)
def test_options_narrow_what_is_read(
    load: Load, everything: DataFrame, broker: Path, options: dict[str, object], condition: str
) -> None:
    records = load(broker / "logs", rows="records", columns=FEW_COLUMNS, **options)

    assert _rows(records) == _rows(everything.where(condition))


def test_what_is_not_asked_for_is_no_task(load: Load, tmp_path: Path) -> None:
    for base in (0, 10, 20):
        _write(tmp_path, "t-0", base, v2_batch(base, [(base, None, b"a")] * 3))

    by_option = load(tmp_path, rows="records", tasks=3, min_offset=11)
    by_filter = load(tmp_path, rows="records", tasks=3, pushdown="true").where("offset >= 11")
    by_name = load(tmp_path, rows="records", tasks=3, segment_base_offset="0,10")

    frames = (by_option, by_filter, by_name)
    assert [frame.rdd.getNumPartitions() for frame in frames] == [2, 2, 2]
    assert sorted(row.offset for row in by_option.collect()) == [11, 12, 20, 21, 22]
    assert sorted(row.offset for row in by_filter.collect()) == [11, 12, 20, 21, 22]
    assert sorted(row.offset for row in by_name.collect()) == [0, 1, 2, 10, 11, 12]


def test_batches_are_narrowed_too(load: Load, broker: Path) -> None:
    rows = load(broker / "logs").select("topic", "max_timestamp_ms").collect()
    expected = [r for r in rows if r.topic == "ct-none" and r.max_timestamp_ms > 1700000020000]

    by_option = load(broker / "logs", topic="ct-none", min_timestamp_ms=1700000020001)
    by_filter = load(broker / "logs", pushdown="true").where(
        "topic = 'ct-none' AND max_timestamp_ms > 1700000020000"
    )

    assert 0 < by_option.count() == by_filter.count() == len(expected) < len(rows)


@pytest.mark.slow
def test_index_files_leave_out_whole_segments_by_timestamp(load: Load, broker: Path) -> None:
    rows = load(broker / "logs", rows="records", columns="topic,offset,timestamp_ms").collect()
    expected = sorted(tuple(row) for row in rows if (row.timestamp_ms or -1) >= 1700000150000)

    plain = load(broker / "logs", min_timestamp_ms=1700000150000, rows="records", tasks=1000)
    narrowed = load(
        broker / "logs",
        index_dir=broker / "rebuilt",
        min_timestamp_ms=1700000150000,
        rows="records",
        tasks=1000,
    )

    found = narrowed.select("topic", "offset", "timestamp_ms")
    assert sorted(map(tuple, found.collect())) == expected
    assert narrowed.rdd.getNumPartitions() < plain.rdd.getNumPartitions()


def test_columns_are_narrowed_by_option_or_by_schema(
    load: Load, spark: SparkSession, broker: Path
) -> None:
    by_option = load(broker / "logs", rows="records", columns="offset, key")
    by_schema = (
        spark.read.format("kafka_segments")
        .schema("offset long, key binary")
        .load(str(broker / "logs"), rows="records")
    )

    assert by_option.columns == by_schema.columns == ["offset", "key"]
    assert by_option.agg(F.sum("offset")).collect() == by_schema.agg(F.sum("offset")).collect()


def test_damage_is_a_row_and_the_rest_is_read(load: Load, tmp_path: Path) -> None:
    good = v2_batch(0, [(5, None, b"a")])
    _write(tmp_path, "t-0", 0, good + good[:-1])
    _write(tmp_path, "t-1", 0, v2_batch(0, [(5, None, b"a")], codec=4, payload=b"junk"))
    _write(tmp_path, "t-2", 0, v0_message(0, None, b"old"))
    _write(tmp_path, "t-3", 0, b"")
    left, whole = len(good) - 1, len(good)

    batches = load(tmp_path).select("partition", "position", "error").collect()
    records = load(tmp_path, rows="records").select("partition", "value", "error").collect()

    torn = f"the batch says {whole} bytes, {left} are left in the file (at byte {whole})"
    assert sorted(map(tuple, batches)) == [
        (0, 0, None),
        (0, whole, torn),
        (1, 0, None),
        (2, 0, None),
    ]
    assert sorted(map(tuple, records), key=str) == [
        (0, None, torn),
        (0, bytearray(b"a"), None),
        (1, None, "zstd: Unknown frame descriptor"),
        (2, bytearray(b"old"), None),
    ]


def test_without_checksums_a_flipped_bit_goes_unnoticed(load: Load, tmp_path: Path) -> None:
    log = bytearray(v2_batch(0, [(5, None, b"a")]))
    log[-2] ^= 1
    _write(tmp_path, "t-0", 0, bytes(log))

    full = load(tmp_path, rows="records").select("value", "error").first()
    headers = load(tmp_path, rows="records", check="headers").select("value", "error").first()

    assert full is not None
    assert full.error.startswith("checksum is 0x")
    assert headers is not None
    assert (bytes(headers.value), headers.error) == (b"`", None)


def test_a_segment_that_vanishes_after_listing_is_a_row(load: Load, tmp_path: Path) -> None:
    _write(tmp_path, "t-0", 0, v2_batch(0, [(5, None, b"a")]))
    _write(tmp_path, "t-1", 0, v2_batch(0, [(5, None, b"a")]))
    batches = load(tmp_path, tasks=1).select("partition", "error")
    assert batches.rdd.getNumPartitions() == 1  # the plan, and with it the list, is made
    shutil.rmtree(tmp_path / "t-0")

    found = sorted(map(tuple, batches.collect()), key=str)

    assert found == [
        (0, "listed, but gone when it was to be read (at byte 0)"),
        (1, None),
    ]


@pytest.mark.slow
def test_several_sources_are_read_at_once(load: Load, tmp_path: Path) -> None:
    for disk in ("a", "b"):
        _write(tmp_path / disk, "t-0", 0, v2_batch(0, [(5, None, disk.encode())]))

    together = load([str(tmp_path / "a"), str(tmp_path / "b")], rows="records")

    assert sorted(bytes(row.value) for row in together.collect()) == [b"a", b"b"]


def test_an_empty_source_has_no_rows(load: Load, tmp_path: Path) -> None:
    assert load(tmp_path).count() == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": "rows"}, "option rows is 'rows', batches or records expected"),
        ({"check": "none"}, "option check is 'none', full or headers expected"),
        ({"columns": "offset"}, "column offset is not one of path, topic"),
        ({"row": "records"}, "option row is not one of path, paths, rows"),
        ({"max_batch_bytes": "1GB"}, "option max_batch_bytes is '1GB', a number from 1024 to"),
        ({"min_offset": "x"}, "option min_offset is 'x', a number from -9223372036854775808 to"),
        ({"partition": "1,b"}, "option partition is 'b', a number from 0 to"),
        ({"pushdown": "yes"}, "option pushdown is 'yes', false or true expected"),
        ({"tasks": 0}, "option tasks is '0', a number from 1 to"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(
    load: Load, tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises((AnalysisException, PythonException), match=message):
        load(tmp_path, **options).count()


def test_a_schema_that_is_not_the_published_one_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    reader = spark.read.format("kafka_segments").schema("position string")

    with pytest.raises(
        (AnalysisException, PythonException), match="column position is string, bigint expected"
    ):
        reader.load(str(tmp_path)).count()


def test_a_link_is_a_row_with_error_or_followed_when_asked(
    load: Load, broker: Path, tmp_path: Path
) -> None:
    log = sorted((broker / "logs" / "ct-none-0").glob("*.log"))[0]
    _write(tmp_path / "logs", "t-0", 0, log.read_bytes())
    moved = tmp_path / "logs" / "moved"
    shutil.copytree(log.parent, moved)
    (tmp_path / "logs" / "t-1").symlink_to(moved)
    (tmp_path / "logs" / "loop").symlink_to(".")

    left = load(tmp_path / "logs", columns="partition,error").distinct().collect()
    followed = load(tmp_path / "logs", columns="partition,error", follow_links="true")

    reason = f"a link, to {moved}: not followed; --follow-links does"
    assert {(row.partition, row.error) for row in left} == {(0, None), (1, reason)}
    assert {tuple(row) for row in followed.distinct().collect()} == {(0, None), (1, None)}


def test_what_stands_in_place_of_a_segment_is_a_row_with_error(
    load: Load, broker: Path, tmp_path: Path
) -> None:
    log = sorted((broker / "logs" / "ct-none-0").glob("*.log"))[0]
    logs, name = tmp_path / "logs", f"{0:020d}.log"
    _write(logs, "t-0", 0, log.read_bytes())
    (logs / "t-1" / name).mkdir(parents=True)
    (logs / "t-1" / "leader-epoch-checkpoint").write_text("0\n0\n")
    (logs / "t-2").mkdir()
    (logs / "replication-offset-checkpoint").write_text("0\n1\nt 2 7\n")

    rows = load(logs, columns="path,topic,partition,error").where("error IS NOT NULL").collect()

    assert {(row.path, row.topic, row.partition, row.error.partition(",")[0]) for row in rows} == {
        (f"{logs}/t-1/{name}", "t", 1, "a folder inside a partition's folder"),
        (f"{logs}/t-2", "t", 2, "no segment lies in it"),
    }


def test_a_source_that_is_not_there_is_an_error(load: Load, tmp_path: Path) -> None:
    with pytest.raises((AnalysisException, PythonException), match="cannot list"):
        load(tmp_path / "missing").count()
