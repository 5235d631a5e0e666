"""Build, on a real Spark with real Delta tables."""

import json
import os
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.catalog import BUILD_TABLES
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.upgrades import made_schema
from kafka_segments.errors import UsageError
from kafka_segments.files.delta.append import MEETS_CONSTRAINTS
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.run import run_build
from kafka_segments.verbs.scan.summary import BuildSummary
from kafka_segments.verbs.scan.write_tables import BuildTables
from support.logs.log_folders import append_batch
from support.logs.strategies import v2_batch
from support.spark.ready_builds import LentBuild, ReadyBuild, build_once
from support.spark.stored_builds import build_few, rows_few

NOW_MS = 1_800_000_000_000
TWO_PARTITIONS = ("ct-two-partitions-0", "ct-two-partitions-1")
LAST, ACTIVE = (
    f"{name}/{base:020d}.log" for name, base in zip(TWO_PARTITIONS, (1581, 1566), strict=True)
)
Table = Callable[[str], DataFrame]


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "ware [h]ouse, {1}*?")


@pytest.fixture
def table(spark: SparkSession, warehouse: str) -> Table:
    return lambda name: spark.read.format("delta").load(f"{warehouse}/{name}")


@pytest.fixture
def built(lent_build: LentBuild, warehouse: str) -> ReadyBuild:
    """Two partitions whose tables ``table`` reads, and to which ``build`` adds a run."""
    return lent_build.lend(Path(warehouse))


@pytest.fixture
def build(spark: SparkSession, warehouse: str, tmp_path: Path) -> Callable[..., BuildSummary]:
    def run(*sources: Path, **options: object) -> BuildSummary:
        where = {} if options.get("in_place") else {"index_dir": str(tmp_path / "indexes")}
        merged = {"recovery": RecoveryOptions(), "now_ms": NOW_MS, **where, **options}
        given = BuildOptions(tuple(map(str, sources)), **merged)  # type: ignore[arg-type]
        return run_build(Warehouse(spark, warehouse), given)

    return run


def _index_files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.suffix in (".index", ".timeindex", ".txnindex")
    }


def test_index_files_of_a_log_directory_equal_those_that_its_broker_rebuilt(
    broker: Path, broker_build: ReadyBuild
) -> None:
    summary = broker_build.summary

    assert (summary.segments_scanned, summary.findings) == (24, 0)
    assert _index_files(broker_build.indexes) == _index_files(broker / "rebuilt")


@pytest.mark.slow
@pytest.mark.usefixtures("few_and_many")
def test_every_synthetic_case_with_default_settings_becomes_a_row_and_kafkas_files(
    spark: SparkSession,
    synthetic: Path,
    build: Callable[..., BuildSummary],
    warehouse: str,
    tmp_path: Path,
) -> None:
    source = tmp_path / "cases"
    expected: dict[str, bytes] = {}
    segments = 0
    for case in sorted(path.parent for path in synthetic.glob("*/case.json")):
        config = json.loads((case / "case.json").read_text())["config"]
        if config == {"index.interval.bytes": 4096, "segment.index.bytes": 10485760}:
            shutil.copytree(case / "t-0", source / case.name / "t-0")
            segments += len(list((case / "t-0").glob("*.log")))
            for name, data in _index_files(case / "expected" / "segment").items():
                expected[f"{case.name}/t-0/{name}"] = data

    summary = build(source)

    assert summary.segments_scanned == segments
    assert len(rows_few(spark, warehouse, tables.SEGMENTS)) == segments
    written = list(Path(warehouse, "segments").glob("*.parquet"))
    assert len(written) == 1  # however many tasks have read them
    assert _index_files(tmp_path / "indexes") == expected


@pytest.mark.usefixtures("built")
def test_table_segments_has_the_published_schema_with_comments_and_not_null(
    table: Table,
) -> None:
    assert {
        made.name: table(made.name).schema == made_schema(made.schema) for made in BUILD_TABLES
    } == {made.name: True for made in BUILD_TABLES}


def test_the_files_that_a_first_builds_tasks_write_are_those_of_the_tables(
    built: ReadyBuild,
) -> None:
    """What Delta writes instead, where it must, has other footers."""
    for table in (tables.OFFSET_INDEX, tables.TIME_INDEX):
        files = list((built.warehouse / table.name).glob("*.parquet"))
        footers = [parquet.read_metadata(file).metadata or {} for file in files]

        assert files
        assert all(MEETS_CONSTRAINTS in footer for footer in footers), table.name


@pytest.mark.slow
def test_the_largest_records_are_a_column_where_a_build_decodes_them(
    spark: SparkSession, built: ReadyBuild
) -> None:
    build_few(spark, str(built.logs), str(built.warehouse), has_record_sizes=True)

    rows = rows_few(spark, str(built.warehouse), tables.SEGMENTS)
    sizes = [row["max_record_bytes"] for row in rows if row["record_count"]]
    assert sizes and all(0 < size < 1024 * 1024 for size in sizes)


def test_entries_are_rows_of_the_index_tables(spark: SparkSession, built: ReadyBuild) -> None:
    file = (built.indexes / "ct-two-partitions-0" / f"{1581:020d}.index").read_bytes()
    offsets, times = (
        rows_few(spark, str(built.warehouse), table)
        for table in (tables.OFFSET_INDEX, tables.TIME_INDEX)
    )

    entries = [
        (row["offset"], row["position"])
        for row in offsets
        if (row["topic"], row["partition"], row["base_offset"]) == ("ct-two-partitions", 0, 1581)
    ]
    written = b"".join(
        (offset - 1581).to_bytes(4, "big") + position.to_bytes(4, "big")
        for offset, position in sorted(entries)
    )
    assert written == file
    assert len(times) == 1 + 1 + 86 + 8


class Changed(NamedTuple):
    """What one build left of three log directories, to each of which something had happened."""

    summary: BuildSummary
    segments: list[dict[str, Any]]
    offset_entries: list[dict[str, Any]]

    def segments_of(self, log_dir: str) -> dict[tuple[int, int], dict[str, Any]]:
        return {
            (row["partition"], row["base_offset"]): row
            for row in self.segments
            if Path(row["log_dir"]).name == log_dir
        }


class LivingLogs:
    """Copies of two partitions, which are built again and again as by the command."""

    def __init__(self, spark: SparkSession, broker: Path, root: Path) -> None:
        self._spark = spark
        self._root = root
        self.logs = root / "logs"
        for log_dir, name in product(("grown", "shrunk", "gone"), TWO_PARTITIONS):
            shutil.copytree(broker / "logs" / name, self.logs / log_dir / name)

    def build(self) -> BuildSummary:
        indexes = str(self._root / "indexes")
        return build_few(self._spark, str(self.logs), str(self._root / "wh"), index_dir=indexes)

    def rows(self, table: tables.Table) -> list[dict[str, Any]]:
        return rows_few(self._spark, str(self._root / "wh"), table)

    def built(self) -> Changed:
        return Changed(self.build(), self.rows(tables.SEGMENTS), self.rows(tables.OFFSET_INDEX))


@pytest.fixture(scope="module")
def living(
    spark: SparkSession, broker: Path, tmp_path_factory: pytest.TempPathFactory
) -> LivingLogs:
    living = LivingLogs(spark, broker, tmp_path_factory.mktemp("living"))
    living.build()
    return living


def test_a_second_run_reads_nothing(living: LivingLogs) -> None:
    runs = len(living.rows(tables.RUNS))

    unchanged = living.build()

    assert (unchanged.segments_scanned, unchanged.segments_unchanged) == (0, 12)
    assert len(living.rows(tables.RUNS)) == runs + 1


@pytest.fixture(scope="module")
def changed(living: LivingLogs) -> Changed:
    """An active segment has grown, another has shrunk, and a third one is gone."""
    append_batch(living.logs / "grown" / ACTIVE)
    os.truncate(living.logs / "shrunk" / ACTIVE, 30_000)
    shutil.move(living.logs / "gone" / LAST, living.logs.with_name("kept.log"))
    return living.built()


@pytest.fixture(scope="module")
def restored(living: LivingLogs, changed: Changed) -> Changed:
    """The segment that was gone has come back."""
    shutil.move(living.logs.with_name("kept.log"), living.logs / "gone" / LAST)
    return living.built()


def test_a_grown_active_segment_alone_is_read_again(changed: Changed) -> None:
    summary = changed.summary
    assert (summary.segments_scanned, summary.segments_unchanged) == (2, 9)  # one has shrunk

    segments = changed.segments_of("grown")

    read = [key for key, row in segments.items() if row["run_id"] == summary.run_id]
    assert read == [(1, 1566)]
    assert segments[1, 1566]["batch_count"] == 12
    names = ("log_dir", "topic", "partition", "base_offset", "offset")
    entries = [tuple(map(row.get, names)) for row in changed.offset_entries]
    assert len(entries) == len(set(entries)) > 0


def test_a_segment_that_shrank_leaves_no_entries_beyond_its_end(changed: Changed) -> None:
    segments = changed.segments_of("shrunk")

    read = {key for key, row in segments.items() if row["run_id"] == changed.summary.run_id}
    assert read == {(1, 1566)}
    row = segments[1, 1566]
    assert row["damage"]["kind"] == "partial_batch"
    assert row["valid_bytes"] + row["truncated_bytes"] == 30_000
    positions = [
        entry["position"]
        for entry in changed.offset_entries
        if (entry["log_dir"], entry["base_offset"]) == (row["log_dir"], 1566)
    ]
    assert 0 < max(positions) < 30_000


def test_a_segment_that_is_gone_is_marked_and_another_is_active_until_it_comes_back(
    changed: Changed, restored: Changed
) -> None:
    def found(after: Changed) -> dict[int, tuple[bool, bool]]:
        return {
            base_offset: (row["is_active"], row["vanished_at"] is not None)
            for (partition, base_offset), row in after.segments_of("gone").items()
            if partition == 0
        }

    assert changed.summary.segments_vanished == 1
    assert found(changed) == {0: (True, False), 1581: (False, True)}
    assert restored.summary.segments_vanished == 0
    assert found(restored) == {0: (False, False), 1581: (True, False)}


def test_a_log_whose_folder_a_broker_renamed_is_known_where_it_lies_now(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs, indexes, warehouse = (str(tmp_path / name) for name in ("logs", "indexes", "tables"))
    folders = [Path(logs, name) for name in (f"t-0.{'0' * 32}-future", "t-0")]
    folders[0].mkdir(parents=True)
    (folders[0] / f"{0:020d}.log").write_bytes(v2_batch(0, [(1, None, b"v")]))

    build_few(spark, logs, warehouse, index_dir=indexes)
    folders[0].rename(folders[1])
    summaries = [build_few(spark, logs, warehouse, index_dir=indexes) for _ in range(2)]

    assert [(one.segments_scanned, one.segments_vanished) for one in summaries] == [(1, 0), (0, 0)]
    (row,) = rows_few(spark, warehouse, tables.SEGMENTS)
    assert row["path"] == str(folders[1] / f"{0:020d}.log")
    assert Path(indexes, "t-0", f"{0:020d}.timeindex").exists()


@pytest.mark.usefixtures("few")
def test_a_run_over_one_partition_marks_nothing_of_another_as_vanished(
    built: ReadyBuild, build: Callable[..., BuildSummary], table: Table
) -> None:
    gone, there = (built.logs / name for name in TWO_PARTITIONS)
    shutil.rmtree(gone)
    summary = build(there, index_dir=str(built.indexes))

    assert (summary.segments_found, summary.segments_vanished) == (2, 0)
    assert table("segments").where("vanished_at IS NOT NULL").isEmpty()


@pytest.mark.slow
@pytest.mark.usefixtures("few_and_many")
def test_a_first_build_of_one_partition_keeps_the_entries_of_another(
    log_dir: Path, build: Callable[..., BuildSummary], table: Table
) -> None:
    for name in TWO_PARTITIONS:
        build(log_dir / name)

    for entries in ("offset_index", "time_index"):
        found = table(entries).select("log_dir", "partition").distinct().collect()
        assert sorted(found) == [(str(log_dir), 0), (str(log_dir), 1)]


@pytest.mark.usefixtures("few_and_many")
def test_damage_is_a_row_and_the_run_goes_on(
    log_dir: Path, build: Callable[..., BuildSummary], table: Table
) -> None:
    log = log_dir / "ct-two-partitions-0" / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[500_000] ^= 1
    log.write_bytes(data)
    with sorted((log_dir / "ct-two-partitions-1").glob("*.log"))[-1].open("ab") as active:
        active.write(data[:100])

    summary = build(log_dir)

    damaged = table("segments").where("damage IS NOT NULL").orderBy("damage.kind").collect()
    assert (summary.segments_scanned, summary.segments_damaged, summary.findings) == (4, 2, 1)
    assert summary.segments_open == 1
    assert [row["damage"]["kind"] for row in damaged] == ["corrupt_batch", "partial_batch"]
    assert damaged[0]["valid_bytes"] == damaged[0]["damage"]["position"] < 500_000


@pytest.fixture(scope="module")
def beside(
    spark: SparkSession, broker: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[BuildSummary, Table]:
    """A build of two partitions with files that are no segments and a broker's own beside them."""
    root = tmp_path_factory.mktemp("beside")
    logs = root / "logs"
    for name in TWO_PARTITIONS:
        shutil.copytree(broker / "logs" / name, logs / name)
    partition = logs / "ct-two-partitions-0"
    (partition / "7.log").write_bytes(b"")
    (partition / f"{0:020d}.log.deleted").write_bytes(b"x")
    shutil.copytree(logs / "ct-two-partitions-1", logs / f"ct-two-partitions-2.{'a' * 32}-delete")
    (logs / "meta.properties").write_text(
        "#\n#Sat Nov 21 2026\nversion=1\ncluster.id=c1\nnode.id=7\ndirectory.id=d\n"
    )
    (logs / "recovery-point-offset-checkpoint").write_text("0\n1\nct-two-partitions 0 1748\n")
    (logs / "replication-offset-checkpoint").write_text("0\n1\nct-two-partitions 0 1700\n")
    (logs / "log-start-offset-checkpoint").write_text("0\n2\nct-two-partitions 0 5\n")
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: MWJ6FHTfRYy67jzwZdeqSQ")
    made = build_once(spark, logs, root)
    return made.summary, lambda name: spark.read.format("delta").load(f"{made.warehouse}/{name}")


def test_what_is_no_segment_is_a_row_of_unrecognized_files(
    beside: tuple[BuildSummary, Table],
) -> None:
    summary, table = beside

    reasons = {
        Path(row["path"]).name: row["reason"] for row in table("unrecognized_files").collect()
    }
    assert summary.segments_found == 4
    assert summary.files_unrecognized == len(reasons) == 4
    assert (summary.files_left_over, summary.unread.places, summary.findings) == (3, 1, 2)
    assert reasons["7.log"] == (
        "no segment name: a broker would open 00000000000000000007.log instead"
    )


@pytest.mark.slow
def test_brokers_files_beside_the_segments_reach_the_tables(
    beside: tuple[BuildSummary, Table],
) -> None:
    _, table = beside

    log = table("logs").where("partition = 0").collect()[0].asDict(recursive=True)
    expected = {
        "cluster": "c1",
        "broker_id": 7,
        "topic_id": "MWJ6FHTfRYy67jzwZdeqSQ",
        "recovery_point": 1748,
        "high_watermark": 1700,
        "log_start_offset": None,
        "leader_epochs": [{"epoch": 0, "start_offset": 0}],
    }
    log_directory = table("log_dirs").collect()[0]
    assert {key: log[key] for key in expected} == expected
    assert log_directory["problem"] == ("log-start-offset-checkpoint: 1 entries, line 2 says 2")


@pytest.mark.usefixtures("few")
def test_an_empty_source_gives_empty_tables_and_is_a_finding(
    tmp_path: Path, build: Callable[..., BuildSummary], table: Table
) -> None:
    (tmp_path / "nothing").mkdir()

    summary = build(tmp_path / "nothing")

    assert (summary.segments_found, summary.findings) == (0, 1)
    assert table("segments").isEmpty()


@pytest.mark.usefixtures("few")
def test_in_place_sets_aside_what_it_replaces(
    log_dir: Path, broker: Path, build: Callable[..., BuildSummary], warehouse: str
) -> None:
    folder = log_dir / "ct-two-partitions-0"
    stale = folder / f"{0:020d}.index"
    stale.write_bytes(b"\x00" * 80)

    summary = build(log_dir, in_place=True)

    rebuilt = _index_files(broker / "rebuilt" / "ct-two-partitions-0")
    kept = Path(warehouse, "_set_aside", summary.run_id, folder.name, stale.name)
    assert _index_files(folder) == rebuilt
    assert kept.read_bytes() == b"\x00" * 80


@pytest.mark.usefixtures("few")
def test_in_place_names_what_is_in_the_way_of_an_index_file(
    log_dir: Path, build: Callable[..., BuildSummary], tmp_path: Path
) -> None:
    odd = log_dir / "ct-two-partitions-0" / f"{0:020d}.timeindex"
    (tmp_path / "elsewhere").write_bytes(b"not for us")
    odd.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UsageError, match=rf"--in-place: {odd} is in the way .* out of the source"):
        build(log_dir, in_place=True)

    assert not (log_dir / "ct-two-partitions-0" / f"{0:020d}.index").exists()


class Died(NamedTuple):
    """Two partitions, and the tables of a build that was killed before it merged the segments."""

    logs: Path
    warehouse: Path


@pytest.fixture(scope="module")
def died(spark: SparkSession, broker: Path, tmp_path_factory: pytest.TempPathFactory) -> Died:
    def die(*_: object) -> None:
        raise InterruptedError("killed")

    root = tmp_path_factory.mktemp("died")
    for name in TWO_PARTITIONS:
        shutil.copytree(broker / "logs" / name, root / "logs" / name)
    with pytest.MonkeyPatch.context() as patched, pytest.raises(InterruptedError):
        patched.setattr(BuildTables, "_write_segments", die)
        build_few(spark, str(root / "logs"), str(root / "wh"))
    return Died(root / "logs", root / "wh")


@pytest.mark.slow
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "written",
    [
        tables.OFFSET_INDEX,
        tables.LOGS,
        pytest.param(tables.TIME_INDEX, marks=pytest.mark.long),
        pytest.param(tables.LOG_DIRS, marks=pytest.mark.long),
    ],
    ids=lambda table: table.name,
)
def test_a_run_that_died_before_the_segments_were_merged_is_made_good_by_the_next(
    spark: SparkSession,
    died: Died,
    build: Callable[..., BuildSummary],
    warehouse: str,
    written: tables.Table,
) -> None:
    """Whichever table it had written: Delta takes seconds to replace the rows of one."""
    shutil.copytree(died.warehouse / written.name, Path(warehouse, written.name))
    rows = len(rows_few(spark, warehouse, written))

    summary = build(died.logs)

    keys = [tuple(map(row.get, written.keys)) for row in rows_few(spark, warehouse, written)]
    assert summary.segments_scanned == 4
    assert len(keys) == len(set(keys)) == rows > 0
    assert len(rows_few(spark, warehouse, tables.SEGMENTS)) == 4
