"""The verb on log directories made for it: tables, second runs, states, changes, damage."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.console.config_options import load_configs
from kafka_segments.console.not_known import noting
from kafka_segments.engine.derived.metadata_configs import read_metadata_configs
from kafka_segments.engine.derived.metadata_in_tables import NoMetadataError, clusters_with_metadata
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.settings import Settings
from kafka_segments.verbs.find.internals.decide.rows import begins_and_ends
from kafka_segments.verbs.find.internals.metadata.decide.changes import later_begins
from support.logs import metadata_logs as made
from support.logs.strategies import v2_batch
from support.spark.altered_tables import ALTERATIONS
from support.spark.filled_tables import fill
from support.spark.rows_of import rows_of

pytestmark = pytest.mark.spark

FIRST = [
    made.no_op(),
    made.feature("metadata.version", 25),
    made.topic("orders", 7),
    made.partition(7, 0),
    made.config("orders", "retention.ms", "1000"),
]
LATER = [
    made.leader(7, 0, 2),
    made.config("", "log.retention.ms", "50", kind=4),
    made.config("orders", "retention.ms", "2000"),
    made.topic("gone", 8),
    made.partition(8, 0),
    made.remove_topic(8),
    made.config("orders", "retention.ms", None),
]
STATE_AT_4 = [
    made.feature("metadata.version", 25),
    made.topic("orders", 7),
    made.partition(7, 0),
    made.config("orders", "retention.ms", "1000"),
]
SEGMENT_0, SEGMENT_5 = f"{0:020d}.log", f"{5:020d}.log"
SNAPSHOT_5 = f"{5:020d}-{1:010d}.checkpoint"
FILES = {
    SEGMENT_0: made.log_bytes(FIRST),
    SEGMENT_5: made.log_bytes(LATER, base_offset=5),
    SNAPSHOT_5: made.snapshot_bytes(STATE_AT_4, end_offset=5),
}
METADATA = ("metadata_topics", "metadata_partitions", "metadata_configs", "metadata_features")


def _run(*arguments: object) -> Any:
    return CliRunner().invoke(cli, ["internals", *map(str, arguments)], catch_exceptions=False)


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def _with_tables(spark: SparkSession, warehouse: Path) -> Path:
    """Make the tables as the verb would, and quicker: Delta takes most of a second for each."""
    for table in (tables.INTERNAL_RECORDS, *tables.METADATA_TABLES):
        fill(Warehouse(spark, str(warehouse)), table, [])
    return warehouse


def _versions(spark: SparkSession, warehouse: Path) -> list[int | None]:
    found = Warehouse(spark, str(warehouse))
    return [found.version(table) for table in (tables.INTERNAL_RECORDS, *tables.METADATA_TABLES)]


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.log_dir(tmp_path_factory.mktemp("disk"), FILES)


@pytest.fixture(scope="module")
def read(spark: SparkSession, disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse into which the log directory was read once."""
    warehouse = _with_tables(spark, tmp_path_factory.mktemp("internals") / "warehouse")
    done = _run("--source", disk, "--warehouse", warehouse, "--output", "json")
    assert done.exit_code == 0, done.stderr
    assert _lines(done.stdout) == [
        {
            "cluster": made.CLUSTER,
            "broker_id": 1,
            "log_dir": str(disk),
            "topic": "__cluster_metadata",
            "partition": 0,
            "records": 12,
            "tombstones": 0,
            "unknown": 0,
            "unreadable": 0,
            "findings": 0,
            "snapshots": 1,
            "from_offset": 0,
            "to_offset": 11,
            "from_ms": made.START_MS,
            "to_ms": made.START_MS + 11_000,
        }
    ]
    return warehouse


@pytest.mark.slow
def test_a_dry_run_says_what_the_tables_would_have_and_writes_nothing(
    spark: SparkSession, read: Path, disk: Path, tmp_path: Path
) -> None:
    written = _run("--source", disk, "--warehouse", read, "--output", "json")
    before = _versions(spark, read)
    grown = made.log_dir(
        tmp_path / "disk", {**FILES, SEGMENT_5: made.log_bytes(LATER[:3], base_offset=5)}
    )
    none = tmp_path / "none"

    again = _run("--source", disk, "--warehouse", read, "--dry-run", "--output", "json")
    first = _run("--source", disk, "--warehouse", none, "--dry-run", "--output", "json")
    other = _run("--source", grown, "--warehouse", read, "--dry-run", "--output", "json")

    assert again.exit_code == first.exit_code == other.exit_code == 0
    assert again.stdout == first.stdout == written.stdout
    assert "1 logs, 0 of them read" in again.stderr
    assert "1 logs, 1 of them read" in first.stderr
    assert not none.exists()
    assert _lines(other.stdout)[0]["to_offset"] == 7
    assert _versions(spark, read) == before


def test_a_dry_run_has_no_state(disk: Path, tmp_path: Path) -> None:
    done = _run("--source", disk, "--warehouse", tmp_path, "--dry-run", "--at", "4")

    assert done.exit_code == 2
    assert "--dry-run writes none: leave one out" in done.stderr


def test_a_second_run_writes_nothing_and_says_the_same(
    spark: SparkSession, read: Path, disk: Path
) -> None:
    before = _versions(spark, read)

    done = _run("--source", disk, "--warehouse", read)

    assert done.exit_code == 0
    assert "1 logs, 0 of them read, 12 records; 0 places unreadable" in done.stderr
    assert done.stdout.split()[-7:-2] == ["1", "0", "11", "2023-11-14", "22:13:20"]
    assert _versions(spark, read) == before


@pytest.mark.slow
def test_rows_hold_from_an_offset_and_a_time_until_another(spark: SparkSession, read: Path) -> None:
    configs = Warehouse(spark, str(read)).read(tables.METADATA_CONFIGS).orderBy("from_offset")
    partitions = Warehouse(spark, str(read)).read(tables.METADATA_PARTITIONS)

    assert [
        made.row(row, "resource_type", "value", "from_offset", "until_offset", "is_from_snapshot")
        for row in configs.collect()
    ] == [
        ("topic", "1000", 4, 7, False),
        ("broker", "50", 6, None, False),
        ("topic", "2000", 7, 11, False),
    ]
    found = partitions.orderBy("from_offset").collect()
    assert [
        made.row(row, "topic", "leader", "leader_epoch", "isr", "from_ms", "until_ms")
        for row in found
    ] == [
        ("orders", 1, 0, [1, 2], made.START_MS + 3_000, made.START_MS + 5_000),
        ("orders", 2, 1, [1, 2], made.START_MS + 5_000, None),
        ("gone", 1, 0, [1, 2], made.START_MS + 9_000, made.START_MS + 10_000),
    ]


@pytest.mark.parametrize(
    ("at", "names"),
    [
        (2, {"orders"}),
        (4, {"orders", "orders-0", "topic orders retention.ms"}),
        (9, {"orders", "orders-0", "topic orders retention.ms", "broker default log.retention.ms",
             "gone", "gone-0"}),
        ("2023-11-14T22:13:24.500Z", {"orders", "orders-0", "topic orders retention.ms"}),
        ("now", {"orders", "orders-0", "broker default log.retention.ms"}),
    ],
)  # fmt: skip
def test_the_state_is_that_of_an_offset_or_a_moment(
    spark: SparkSession, read: Path, at: object, names: set[str]
) -> None:
    done = _run("--at", at, "--warehouse", read, "--output", "json")

    assert done.exit_code == 0
    assert {line["name"] for line in _lines(done.stdout)} == names | {"metadata.version"}


def test_a_state_is_printed_as_a_table(spark: SparkSession, read: Path) -> None:
    done = _run("--at", 4, "--warehouse", read)

    lines = {line.split()[0]: " ".join(line.split()) for line in done.stdout.splitlines()}
    assert lines["config"] == "config topic orders retention.ms 1000 4 2023-11-14 22:13:24"
    assert lines["feature"] == "feature metadata.version level=25 1 2023-11-14 22:13:21"
    assert lines["partition"] == (
        "partition orders-0 replicas=[1,2] isr=[1,2] leader=1 leader_epoch=0 partition_epoch=0"
        " 3 2023-11-14 22:13:23"
    )


@pytest.mark.parametrize("at", [0, "2023-11-14T22:13:19Z"])
def test_a_state_before_the_history_is_refused(spark: SparkSession, read: Path, at: object) -> None:
    done = _run("--at", at, "--warehouse", read)

    assert done.exit_code == 2
    assert f"the history of cluster {made.CLUSTER} begins at offset 1, 2023-11" in done.stderr


def test_changes_are_those_of_configs_and_leaders(spark: SparkSession, read: Path) -> None:
    done = _run("changed", "--warehouse", read, "--output", "json")

    found = [
        made.row(line, "offset", "kind", "name", "before", "after") for line in _lines(done.stdout)
    ]
    assert found == [
        (3, "leader", "orders-0", None, "1"),
        (4, "config", "topic orders retention.ms", None, "1000"),
        (5, "leader", "orders-0", "1", "2"),
        (6, "config", "broker default log.retention.ms", None, "50"),
        (7, "config", "topic orders retention.ms", "1000", "2000"),
        (9, "leader", "gone-0", None, "1"),
        (10, "leader", "gone-0", "1", None),
        (11, "config", "topic orders retention.ms", "2000", None),
    ]
    assert "records of __cluster_metadata were read up to 2023-11-14 22:13:3" in done.stderr


def test_a_state_of_a_moment_behind_the_last_record_says_where_that_is(
    spark: SparkSession, read: Path
) -> None:
    asked = ("now", "2023-11-14T22:13:24Z", 4)
    told = [_run("--at", at, "--warehouse", read).stderr for at in asked]

    said = ["records of __cluster_metadata were read up to 2023-11-14" in text for text in told]
    assert said == [True, False, False]


@pytest.mark.slow
def test_a_brokers_secrets_are_not_told_but_that_and_when_they_were_set(
    spark: SparkSession, tmp_path: Path
) -> None:
    password, of_plugin = "listener.name.x.ssl.keystore.password", "some.plugins.own"
    records = [
        made.config("1", password, "s3cret-a", kind=4),
        made.config("1", password, "s3cret-b", kind=4),
        made.config("1", password, "s3cret-b", kind=4),
        made.config("", of_plugin, "s3cret-c", kind=4),
        made.config("1", "log.cleaner.threads", "2", kind=4),
        made.config("", of_plugin, None, kind=4),
    ]
    disk = made.log_dir(tmp_path / "disk", {SEGMENT_0: made.log_bytes(records)})
    warehouse = tmp_path / "warehouse"

    state = _run("--source", disk, "--warehouse", warehouse, "--at", 4, "--output", "json")
    changed = _run("changed", "--warehouse", warehouse, "--output", "json")

    assert {
        line["name"]: (json.loads(line["state"])["value"], line["from_offset"])
        for line in _lines(state.stdout)
    } == {
        f"broker 1 {password}": ("[hidden]", 1),
        f"broker default {of_plugin}": ("[hidden]", 3),
        "broker 1 log.cleaner.threads": ("2", 4),
    }
    assert [made.row(line, "offset", "before", "after") for line in _lines(changed.stdout)] == [
        (0, None, "[hidden]"),
        (1, "[hidden]", "[hidden]"),
        (3, None, "[hidden]"),
        (4, None, "2"),
        (5, "[hidden]", None),
    ]
    tables_with = {
        table.name
        for table in (tables.INTERNAL_RECORDS, *tables.METADATA_TABLES)
        for row in Warehouse(spark, str(warehouse)).read(table).collect()
        if "s3cret" in str(row)
    }
    assert tables_with == {"internal_records"}


def test_a_history_that_begins_with_a_snapshot_tells_where(spark: SparkSession) -> None:
    rows = [("whole", 0, 1, False), ("whole", 5, 6, False), ("later", 7, 8, True)]
    rows += [("later", 9, 10, False), ("first", 0, 1, True)]
    columns = "cluster string, from_offset long, from_ms long, is_from_snapshot boolean"

    found = rows_of(spark, rows, columns).transform(later_begins).collect()

    assert [tuple(row) for row in found] == [("later", 7, 8)]


def test_changes_since_a_moment_are_printed_as_a_table(spark: SparkSession, read: Path) -> None:
    done = _run("changed", "--since", made.START_MS + 11_000, "--warehouse", read)

    assert done.stdout.splitlines()[-1].split() == [
        *("11", "2023-11-14", "22:13:31", "config", "topic", "orders", "retention.ms"),
        *("2000", "-", "-"),
    ]


@pytest.mark.parametrize(
    ("after_ms", "found"),
    [
        (4_000, [("topic", "orders", "1000")]),
        (6_999, [("broker", "", "50"), ("topic", "orders", "1000")]),
        (7_000, [("broker", "", "50"), ("topic", "orders", "2000")]),
        (60_000, [("broker", "", "50")]),
    ],
)
def test_the_settings_of_a_moment_are_told_without_spark(
    read: Path, after_ms: int, found: list[tuple[str, ...]]
) -> None:
    clusters = clusters_with_metadata(str(read), at_ms=made.START_MS + after_ms)

    (held,) = read_metadata_configs(str(read), clusters.at_offset)

    assert held.cluster == made.CLUSTER
    assert [(one.resource_type, one.resource_name, one.value) for one in held.configs] == found


def test_no_settings_are_told_where_there_are_none_or_later_ones(
    read: Path, tmp_path: Path
) -> None:
    begin_ms = made.START_MS + 1_000

    assert clusters_with_metadata(str(tmp_path), at_ms=made.START_MS) == ({}, {})
    assert clusters_with_metadata(str(read), at_ms=begin_ms - 1) == ({}, {made.CLUSTER: begin_ms})
    assert clusters_with_metadata(str(read), at_ms=begin_ms) == ({made.CLUSTER: 1}, {})


@pytest.mark.slow
def test_a_moment_is_the_offset_before_the_first_later_change_for_the_state_and_for_settings(
    spark: SparkSession, tmp_path: Path
) -> None:
    points = [(5, 100), (6, 300), (7, 200), (8, 350)]
    rows = [
        {"cluster": "a", "name": str(offset), "from_offset": offset, "from_ms": ms}
        | {"until_offset": 9, "until_ms": 250, "is_from_snapshot": False}
        for offset, ms in points
    ]
    warehouse = Warehouse(spark, str(tmp_path))
    fill(warehouse, tables.METADATA_CONFIGS, rows)
    held = warehouse.read(tables.METADATA_CONFIGS)

    for at_ms, offset in ((100, 5), (249, 5), (299, 5), (300, 7), (350, 2**63 - 1)):
        (row,) = begins_and_ends(held, at_ms=at_ms).collect()
        assert tuple(row) == ("a", 5, 100, offset)
        assert clusters_with_metadata(str(tmp_path), at_ms=at_ms).at_offset == {"a": offset}


@pytest.mark.slow
def test_a_deposed_controllers_clock_does_not_say_which_offset_a_moment_stands_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    tail = made.config("orders", "retention.ms", "1")
    deposed = FILES[SEGMENT_0] + made.log_bytes([tail], base_offset=5)
    elected = made.config("orders", "retention.ms", "2")
    later = v2_batch(5, [(made.START_MS + 4_100, None, elected)], leader_epoch=2)
    disks = (
        made.log_dir(tmp_path / "one", {SEGMENT_0: deposed}),
        made.log_dir(tmp_path / "two", {SEGMENT_0: FILES[SEGMENT_0] + later}, node=2),
    )
    sources = (f"--source={disk}" for disk in disks)

    done = _run(
        *(*sources, "--warehouse", tmp_path / "warehouse", "--output", "json"),
        *("--at", "2023-11-14T22:13:24.500Z"),
    )

    (config,) = [line for line in _lines(done.stdout) if line["kind"] == "config"]
    assert (json.loads(config["state"])["value"], config["from_offset"]) == ("2", 5)


def test_a_clusters_metadata_is_found_by_any_of_its_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    held = {"from_ms": 5, "is_from_snapshot": False}
    rows = {
        tables.METADATA_TOPICS: {"topic": "t", "cluster": "a", "from_offset": 3, **held},
        tables.METADATA_FEATURES: {"name": "f", "cluster": "b", "from_offset": 4, **held},
    }
    for table, row in rows.items():
        fill(warehouse, table, [row])

    assert clusters_with_metadata(str(tmp_path), at_ms=4) == ({}, {"a": 5, "b": 5})
    assert clusters_with_metadata(str(tmp_path), at_ms=5).at_offset.keys() == {"a", "b"}


def test_a_table_of_metadata_that_only_spark_reads_is_told_of(
    read: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_segments.engine.derived.metadata_in_tables.METADATA_BYTES", 1)

    with pytest.raises(NoMetadataError, match="its table metadata_topics is too large"):
        clusters_with_metadata(str(read), at_ms=made.START_MS)


def _load(
    warehouse: Path, *files: Path, now_ms: int = made.START_MS + 8_000, decide: bool = False
) -> TopicConfigs:
    return load_configs(
        Settings.load(None, []),
        topic_configs=files,
        server_properties=None,
        warehouse=str(warehouse),
        now_ms=now_ms,
        decide=decide,
    )


def test_retention_takes_the_settings_of_its_moment_and_a_file_wins(
    read: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "configs.txt"
    file.write_text("Dynamic configs for topic orders are:\n  retention.ms=3\n")

    found = _load(read).of(made.CLUSTER)
    told, other = found.resolve("orders", 1), found.resolve("other", 1)
    place = "metadata log, offset 7, since 2023-11-14 22:13:27.000 UTC"
    assert told["retention_ms"].value == 2_000
    assert told["retention_ms"].origin == f"topic: {place}"
    assert other["retention_ms"].value == 50
    said = "settings of 1 topics and 0 brokers and of the cluster taken from the metadata log of"
    assert f"{said} cluster {made.CLUSTER}, 2023-11-14 22:13:28.000 UTC" in capsys.readouterr().err
    with_file = _load(read, file).of(made.CLUSTER)
    told = with_file.resolve("orders", 1)["retention_ms"]
    assert (told.value, told.origin) == (3, f"topic: {file} (line 1)")
    assert with_file.resolve("other", 1)["retention_ms"].value == 50
    assert capsys.readouterr().err.splitlines() == [
        f"settings of 1 topics and 0 brokers read from {file}",
        f"{said} cluster {made.CLUSTER}, 2023-11-14 22:13:28.000 UTC, where the files do not tell",
    ]
    early = _load(read, now_ms=made.START_MS).of(made.CLUSTER).resolve("orders", 1)
    assert early["retention_ms"].origin == "Kafka's default"
    assert capsys.readouterr().err == (
        f"cluster {made.CLUSTER}: the history of its metadata begins at 2023-11-14 22:13:21.000"
        " UTC, after 2023-11-14 22:13:20.000 UTC: its topics' settings are not taken from there;"
        " give --topic-configs\n"
    )


def test_logs_of_a_cluster_without_metadata_take_no_other_clusters_settings_and_it_is_said(
    spark: SparkSession, read: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = tmp_path / "warehouse"
    shutil.copytree(read, warehouse)
    log_dirs = [{"cluster": name, "log_dir": f"/{name}"} for name in (made.CLUSTER, "b", "")]
    fill(Warehouse(spark, str(warehouse)), tables.LOG_DIRS, log_dirs)

    configs_file = tmp_path / "configs.txt"
    configs_file.write_text("Dynamic configs for topic orders are:\n  retention.ms=3\n")

    configs = _load(warehouse)

    assert configs.of(made.CLUSTER).resolve("orders", 1)["retention_ms"].value == 2_000
    assert configs.of("b").resolve("orders", 1)["retention_ms"].origin == "Kafka's default"
    said = (
        f"{warehouse} has no metadata of it, but of {made.CLUSTER}: its topics' settings are not"
        " taken from there; give --topic-configs"
    )
    assert capsys.readouterr().err.splitlines()[:-1] == [
        f"cluster (no name): {said}",
        f"cluster b: {said}",
    ]
    with noting() as told:
        _load(warehouse, decide=True)
        assert [line.split(":")[0] for line in told] == ["cluster (no name)", "cluster b"]
        assert "settings are not known, and the next level decides" in told[0]
        _load(warehouse, configs_file, decide=True)
    assert len(told) == 2


@pytest.mark.slow
def test_clusters_and_lacks_in_tables_that_spark_alone_reads_are_not_known(
    spark: SparkSession, read: Path, tmp_path: Path
) -> None:
    warehouse = tmp_path / "warehouse"
    shutil.copytree(read, warehouse)
    fill(Warehouse(spark, str(warehouse)), tables.LOG_DIRS, [{"cluster": "b", "log_dir": "/b"}])
    for table in (tables.LOG_DIRS, tables.METADATA_PROBLEMS):
        ALTERATIONS["widened types"](spark, str(warehouse / table.name))

    with noting() as told:
        configs = _load(warehouse, decide=True)

    assert configs.of(made.CLUSTER).resolve("orders", 1)["retention_ms"].value == 2_000
    why = "is too large to be read here, or has features of Delta's that only Spark reads"
    assert told == [
        f"{warehouse}: its table metadata_problems {why}: what histories of metadata lack is not"
        " known",
        f"{warehouse}: its table log_dirs {why}: of clusters without metadata, its topics' settings"
        " are not known, and the next level decides; give --topic-configs",
    ]


def test_settings_are_not_known_where_other_internal_topics_were_read_and_no_metadata_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What lacks then was left out; where no internal topic was asked for nothing was."""
    fill(Warehouse(spark, str(tmp_path)), tables.LOG_DIRS, [{"cluster": "b", "log_dir": "/b"}])
    with noting() as told:
        _load(tmp_path, decide=True)
        assert told == []

        Warehouse(spark, str(tmp_path)).create(tables.INTERNAL_RECORDS)
        _load(tmp_path, decide=True)

    assert told == [
        f"cluster b: {tmp_path} has no metadata of it: its topics' settings are not known, and the"
        " next level decides; give --topic-configs"
    ]


@pytest.mark.slow
def test_a_log_that_changed_is_read_anew_one_without_its_begin_goes_by_a_snapshot_and_one_goes(
    spark: SparkSession, tmp_path: Path
) -> None:
    disk, warehouse = made.log_dir(tmp_path / "disk", FILES), tmp_path / "warehouse"
    log = disk / "__cluster_metadata-0"
    _run("--source", disk, "--warehouse", warehouse)
    (log / SEGMENT_0).unlink()
    longer = made.log_bytes([*LATER, made.feature("group.version", 1)], base_offset=5)
    (log / SEGMENT_5).write_bytes(longer)

    done = _run("--source", disk, "--warehouse", warehouse, "--at", 12, "--output", "json")

    lines = _lines(done.stdout)
    assert "1 logs, 1 of them read, 8 records" in done.stderr
    assert {line["name"]: line["is_from_snapshot"] for line in lines} == {
        "broker default log.retention.ms": False,
        "group.version": False,
        "metadata.version": True,
        "orders": True,
        "orders-0": False,
    }
    refused = _run("--warehouse", warehouse, "--at", 3)
    assert "begins at offset 4, 2023-11-14 22:13:24.000 UTC" in refused.stderr
    begin = "not known what changed before offset 4, 2023-11-14 22:13:24.000 UTC"
    early = _run("changed", "--warehouse", warehouse, "--since", made.START_MS)
    late = _run("changed", "--warehouse", warehouse, "--since", made.START_MS + 4_000)
    assert begin in _run("changed", "--warehouse", warehouse).stderr
    assert begin in early.stderr
    assert early.exit_code == 1
    assert begin not in late.stderr
    for name in (SEGMENT_5, SNAPSHOT_5):
        (log / name).unlink()
    unmounted = _run("--source", disk, "--warehouse", warehouse)
    assert unmounted.exit_code == 2
    assert "1 of 1 logs of internal topics that the tables know there have vanished" in (
        unmounted.stderr
    )
    gone = _run("--source", disk, "--warehouse", warehouse, "--most-vanished", 100)
    assert "0 logs, 1 of them read, 0 records" in gone.stderr
    assert f"cluster {made.CLUSTER}: its metadata cannot be told: the log has no records" in (
        gone.stderr
    )
    assert gone.exit_code == 1


@pytest.mark.slow
@pytest.mark.usefixtures("asked_few_and_many")
def test_damage_is_told_and_the_rest_is_read(spark: SparkSession, tmp_path: Path) -> None:
    torn, spoiled = bytearray(FILES[SEGMENT_0]), bytearray(FILES[SNAPSHOT_5])
    torn[-1] ^= 1
    spoiled[-1] ^= 1
    half = FILES[SEGMENT_5][: len(FILES[SEGMENT_5]) - 5]
    damaged = {SEGMENT_0: bytes(torn), SEGMENT_5: half, SNAPSHOT_5: bytes(spoiled)}
    one = made.log_dir(tmp_path / "one", damaged)
    sound = made.log_dir(tmp_path / "two", {SNAPSHOT_5: FILES[SNAPSHOT_5]}, node=2)
    warehouse = tmp_path / "warehouse"

    arguments = ("--source", one, "--source", sound, "--warehouse", warehouse)
    done = _run(*arguments, "--at", "now", "--output", "json")

    assert done.exit_code == 1
    assert "2 logs, 2 of them read, 10 records; 3 places unreadable, 2 of them findings" in (
        done.stderr
    )
    assert {line["name"]: line["from_offset"] for line in _lines(done.stdout)} == {
        "broker default log.retention.ms": 6,
        "metadata.version": 4,
        "orders": 4,
        "orders-0": 5,
        "topic orders retention.ms": 7,
    }


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"

    for arguments, message in (
        ([], "nothing to read and nothing to print: give --source, --at, or both"),
        (["--source", tmp_path, "--topic", "orders"], "--topic orders: one of __cluster_metadata"),
        (["--at", "yesterday"], "'yesterday' is no moment"),
    ):
        done = _run("--warehouse", warehouse, *arguments)
        assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
