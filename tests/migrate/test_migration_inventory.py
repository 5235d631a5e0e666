"""The inventory before a migration, on a log directory as an old broker leaves it."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import Row, SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.derived.metadata_configs import ConfigAtOffset, MetadataConfigs
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.tables.catalog import MIGRATION_INVENTORY, MIGRATION_OBSTACLES
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.text.kafka_configs import GoneSetting
from kafka_segments.settings import Settings, TopicConfig
from kafka_segments.verbs.change.migrate.inventory.removed_settings import removed_in_metadata
from kafka_segments.verbs.change.migrate.inventory.report import print_inventory
from kafka_segments.verbs.change.migrate.inventory.run import (
    Inventory,
    InventoryOptions,
    run_inventory,
)
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.run import InternalsOptions, run_internals
from kafka_segments.verbs.judge.retention.decide.rules import RetentionRules
from kafka_segments.verbs.judge.retention.run import RetentionOptions
from support.logs import metadata_logs as made
from support.logs.strategies import (
    GZIP,
    LOG_APPEND_TIME,
    gzip_wrapper,
    v0_message,
    v1_message,
    v2_batch,
)
from support.spark.stored_builds import build_few

NOW_MS = 2_000_000_000_000
DAY_MS = 86_400_000
MARKED = "gone-0.0123456789abcdef0123456789abcdef-delete"
SETTINGS = (
    GoneSetting(None, None, "zookeeper.connect", "zk:2181"),
    GoneSetting(None, None, "inter.broker.protocol.version", "0.10.0-IV1"),
    GoneSetting("old", None, "message.format.version", "0.9.0"),
)
V0 = v0_message(0, None, b"a") + v0_message(1, b"k", None)
SET_V0 = gzip_wrapper([v0_message(offset, None, b"b") for offset in range(10, 13)], offset=12)
V1 = v1_message(0, NOW_MS - DAY_MS, None, b"c")
V1_APPENDED = v1_message(1, NOW_MS - DAY_MS, None, b"d", attributes=LOG_APPEND_TIME)
V2_GZIP = v2_batch(2, [(NOW_MS - DAY_MS, None, b"e")] * 4, codec=GZIP)


def _segment(
    folder: Path, base_offset: int, data: bytes, *suffixes: str, age_days: int = 0
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in suffixes:
        (folder / f"{base_offset:020d}{suffix}").touch()
    log = folder / f"{base_offset:020d}.log"
    log.write_bytes(data)
    moment = (NOW_MS - age_days * DAY_MS) / 1000
    os.utime(log, (moment, moment))


def _old_log_dir(logs: Path) -> None:
    both = (".index", ".timeindex")
    _segment(logs / "old-0", 0, V0, age_days=8)
    _segment(logs / "old-0", 10, SET_V0, ".index")
    _segment(logs / "mixed-0", 0, V1 + V1_APPENDED + V2_GZIP, *both)
    _segment(logs / "over-0", 0, V1 + v1_message(2**31 + 5, NOW_MS, None, b"f"), *both)
    _segment(logs / "bad-0", 0, V1 + b"no message, only rubbish, in a closed segment", *both)
    _segment(logs / "bad-0", 5, b"", *both)
    _segment(logs / "clean-0", 0, V2_GZIP, *both)
    (logs / "clean-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    )
    (logs / "clean-0" / "leader-epoch-checkpoint").write_text("0\n0\n")
    _segment(logs / MARKED, 0, V0)
    (logs / "old-0" / f"{0:020d}.log.deleted").touch()
    (logs / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=old\n")


def _take(spark: SparkSession, warehouse: Path) -> Inventory:
    configs = TopicConfigs.load(Settings(topics={"clean": TopicConfig(retention_ms=-1)}))
    retention = RetentionOptions(configs, RetentionRules.of("4.3"), NOW_MS)
    with few_rows(spark):
        return run_inventory(
            Warehouse(spark, str(warehouse)), InventoryOptions(retention, SETTINGS), dry_run=False
        )


@pytest.fixture(scope="module")
def taken(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Inventory]]:
    folder = tmp_path_factory.mktemp("inventory")
    _old_log_dir(folder / "logs")
    build_few(spark, str(folder / "logs"), str(folder / "wh"), now_ms=NOW_MS)
    inventory = _take(spark, folder / "wh")
    yield folder, inventory
    inventory.segments.unpersist()
    inventory.obstacles.unpersist()


@pytest.fixture(scope="module")
def segments(taken: tuple[Path, Inventory]) -> dict[tuple[str, int], Row]:
    rows = taken[1].segments.collect()
    return {(row["topic"], row["base_offset"]): row for row in rows}


def test_formats_are_counted_from_the_table_or_the_file(
    segments: dict[tuple[str, int], Row],
) -> None:
    formats = {key: [tuple(one) for one in row["formats"]] for key, row in segments.items()}

    assert formats == {
        ("old", 0): [(0, "none", "NoTimestampType", 2, 2, len(V0))],
        ("old", 10): [(0, "gzip", "NoTimestampType", 1, 3, len(SET_V0))],
        ("mixed", 0): [
            (1, "none", "CreateTime", 1, 1, len(V1)),
            (1, "none", "LogAppendTime", 1, 1, len(V1_APPENDED)),
            (2, "gzip", "CreateTime", 1, 4, len(V2_GZIP)),
        ],
        ("over", 0): [(1, "none", "CreateTime", 1, 1, len(V1))],
        ("bad", 0): [(1, "none", "CreateTime", 1, 1, len(V1))],
        ("bad", 5): [],
        ("clean", 0): [(2, "gzip", "CreateTime", 1, 4, len(V2_GZIP))],
    }
    mixed = segments["mixed", 0]
    assert mixed["legacy_bytes"] == len(V1 + V1_APPENDED)
    assert (mixed["legacy_batch_count"], mixed["legacy_record_count"]) == (2, 2)
    assert segments["clean", 0]["legacy_bytes"] == 0


@pytest.mark.slow
def test_headers_alone_leave_records_uncounted_and_findings_are_status_1(
    taken: tuple[Path, Inventory],
) -> None:
    arguments = ["--warehouse", taken[0] / "wh", "--now-ms", NOW_MS, "--output", "json"]

    done = CliRunner().invoke(
        cli, ["migrate", "inventory", "--headers-only", "--dry-run", *map(str, arguments)]
    )

    assert done.exit_code == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    (row,) = (row for row in rows if (row["topic"], row["base_offset"]) == ("old", 10))
    assert row["formats"][0]["record_count"] is None
    assert (row["legacy_batch_count"], row["legacy_record_count"]) == (1, None)


def test_segments_go_now_later_or_never(segments: dict[tuple[str, int], Row]) -> None:
    assert {key: row["goes"] for key, row in segments.items()} == {
        ("old", 0): "now",
        ("old", 10): "later",
        ("mixed", 0): "later",
        ("over", 0): "later",
        ("bad", 0): "never",
        ("bad", 5): "never",
        ("clean", 0): "never",
    }
    assert segments["old", 10]["deletes_at_ms"] == NOW_MS + 7 * DAY_MS + 1
    assert segments["clean", 0]["reason_code"] == "no_limit"
    assert [key for key, row in segments.items() if row["relies_on_mtime"]] == [
        key for key in segments if key[0] == "old"
    ]


def test_clients_at_risk_follow_from_the_formats(segments: dict[tuple[str, int], Row]) -> None:
    assert {key: set(row["clients"]) for key, row in segments.items()} == {
        ("old", 0): {"reads_legacy", "no_timestamps"},
        ("old", 10): {"reads_legacy", "no_timestamps"},
        ("mixed", 0): {"reads_legacy", "v2_beside_legacy"},
        ("over", 0): {"reads_legacy"},
        ("bad", 0): {"reads_legacy"},
        ("bad", 5): set(),
        ("clean", 0): set(),
    }


def test_what_stands_in_the_way_is_named(
    segments: dict[tuple[str, int], Row], taken: tuple[Path, Inventory]
) -> None:
    of_segments = {key: set(row["obstacles"]) for key, row in segments.items()}
    assert of_segments == {
        ("old", 0): {"legacy_format", "index_missing"},
        ("old", 10): {"legacy_format", "time_index_missing"},
        ("mixed", 0): {"legacy_format"},
        ("over", 0): {"legacy_format", "offset_overflow"},
        ("bad", 0): {"legacy_format", "damaged"},
        ("bad", 5): set(),
        ("clean", 0): set(),
    }

    rows = taken[1].obstacles.collect()

    found = {(row["topic"], row["code"]): row for row in rows}
    legacy_logs = ("old", "mixed", "over", "bad")
    assert set(found) == {
        *((topic, "legacy_format") for topic in legacy_logs),
        *((topic, code) for topic in legacy_logs for code in ("no_topic_id", "no_leader_epochs")),
        ("old", "index_missing"),
        ("old", "time_index_missing"),
        ("over", "offset_overflow"),
        ("bad", "damaged"),
        (None, "zookeeper_mode"),
        (None, "unclean_shutdown"),
        (None, "marked_folder"),
        (None, "leftover_file"),
        (None, "zookeeper_setting"),
        (None, "old_protocol"),
        ("old", "gone_setting"),
    }
    assert len(rows) == len(found)
    blocking = {code for (_, code), row in found.items() if row["is_blocking"]}
    assert blocking == {
        "offset_overflow",
        "no_topic_id",
        "zookeeper_setting",
        "old_protocol",
    }
    legacy = found["old", "legacy_format"]
    assert (legacy["count"], legacy["example"]) == (2, f"old-0/{0:020d}.log")
    assert legacy["bytes"] == len(V0) + len(SET_V0)
    assert all(row["obstacle"] and row["action"] for row in rows)


@pytest.mark.slow
def test_both_tables_keep_the_run(spark: SparkSession, taken: tuple[Path, Inventory]) -> None:
    folder, inventory = taken
    tables = Warehouse(spark, str(folder / "wh"))

    assert tables.read(MIGRATION_INVENTORY).count() == inventory.segments.count() == 7
    assert tables.read(MIGRATION_OBSTACLES).count() == inventory.obstacles.count()


@pytest.mark.parametrize("by", ["topic", "segment"])
def test_the_report_sums_up_by_any_level(
    taken: tuple[Path, Inventory], capsys: pytest.CaptureFixture[str], by: str
) -> None:
    print_inventory(taken[1], "table", by=by, rows="segments")

    printed = capsys.readouterr().out
    assert "blocks: no_topic_id (4, e.g. " in printed
    assert "note: unclean_shutdown (1, e.g. " in printed
    assert "reads_legacy" in printed
    assert ("base_offset" in printed) == (by == "segment")


def test_nothing_in_the_way_is_said(
    taken: tuple[Path, Inventory], capsys: pytest.CaptureFixture[str]
) -> None:
    inventory = taken[1]

    print_inventory(
        Inventory(inventory.segments.limit(0), inventory.obstacles.limit(0)),
        "table",
        by="topic",
        rows="segments",
    )

    assert capsys.readouterr().out == "nothing stands in the way of a 4.x broker\n"


def test_rows_are_json_lines_of_either_table(
    taken: tuple[Path, Inventory], capsys: pytest.CaptureFixture[str]
) -> None:
    print_inventory(taken[1], "json", by="topic", rows="segments")
    segments = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    print_inventory(taken[1], "json", by="topic", rows="obstacles")
    obstacles = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [row["topic"] for row in segments][:2] == ["bad", "bad"]
    assert {row["code"] for row in obstacles} >= {"legacy_format", "no_topic_id"}


def test_settings_that_kafka_4_does_not_have_are_those_of_the_metadata_where_no_file_tells(
    tmp_path: Path,
) -> None:
    names = {
        ("topic", "old"): ("message.format.version", "3.0-IV1"),
        ("topic", "told"): ("message.format.version", "2.8"),
        ("topic", "new"): ("retention.ms", "5"),
        ("broker", "3"): ("log.message.format.version", "3.0"),
        ("broker", ""): ("log.message.downconversion.enable", "false"),
    }
    held = tuple(
        ConfigAtOffset(*resource, *config, 7, 7_000, is_from_snapshot=False)
        for resource, config in names.items()
    )
    file = tmp_path / "configs.txt"
    file.write_text("Dynamic configs for topic told are:\n", "utf-8")
    configs = TopicConfigs.load(
        Settings(), topic_configs=[file], metadata=[MetadataConfigs("c", held)]
    )

    assert set(removed_in_metadata(configs)) == {
        ("old", None, "message.format.version", "3.0-IV1", "c"),
        (None, 3, "log.message.format.version", "3.0", "c"),
        (None, None, "log.message.downconversion.enable", "false", "c"),
    }


@pytest.mark.slow
def test_the_verb_takes_such_settings_from_the_metadata_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    records = [
        made.topic("old", 7),
        made.config("old", "message.format.version", "3.0-IV1"),
    ]
    disk = made.log_dir(tmp_path / "disk", {f"{0:020d}.log": made.log_bytes(records)})
    _segment(disk / "old-0", 0, V2_GZIP, ".index", ".timeindex")
    warehouse = str(tmp_path / "warehouse")
    build_few(spark, str(disk), warehouse)
    with few_rows(spark), ExitStack() as caches:
        run_internals(Warehouse(spark, warehouse), InternalsOptions(Origin((str(disk),))), caches)

    done = CliRunner().invoke(
        cli,
        [
            *("migrate", "inventory", "--warehouse", warehouse, "--dry-run"),
            *("--rows", "obstacles", "--output", "json"),
        ],
    )

    rows = [json.loads(line) for line in done.stdout.splitlines()]
    (found,) = [row for row in rows if row["code"] == "gone_setting"]
    assert (found["cluster"], found["topic"]) == (made.CLUSTER, "old")
    assert found["example"] == "message.format.version=3.0-IV1"
