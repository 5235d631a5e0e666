"""Take the inventory before a migration: segments, when they go, and obstacles to Kafka 4."""

import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.frames.engines import computed_once, in_one_task
from kafka_segments.engine.limits import Load
from kafka_segments.engine.sources.segment_files import with_segment_files
from kafka_segments.engine.tables.catalog import (
    LOG_DIRS,
    LOGS,
    MIGRATION_INVENTORY,
    MIGRATION_OBSTACLES,
    SEGMENTS,
    UNRECOGNIZED_FILES,
    Table,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.engine.tables.run_columns import stamp_of
from kafka_segments.kafka.text.kafka_configs import GoneSetting
from kafka_segments.verbs.change.migrate.decide import obstacles
from kafka_segments.verbs.change.migrate.decide.inventory import (
    is_counted_again,
    take_inventory,
    with_formats,
)
from kafka_segments.verbs.change.migrate.inventory.tasks import count_formats
from kafka_segments.verbs.judge.retention.decide.decisions import decide_retention
from kafka_segments.verbs.judge.retention.run import RetentionOptions, segments_to_decide

_DECIDED = ("decision", "deletes_at_ms", "reason_code", "reason")


@dataclass(frozen=True)
class InventoryOptions:
    """Options of an inventory.

    Attributes:
        retention: Decides which segments go by themselves.
        gone_settings: Settings in use that Kafka 4 does not have.
        decompresses: Compressed messages v0 and v1 are opened to count their records.
    """

    retention: RetentionOptions
    gone_settings: Sequence[GoneSetting] = ()
    decompresses: bool = True


@dataclass(frozen=True)
class Inventory:
    """Rows of ``migration_inventory`` and ``migration_obstacles``, computed once."""

    segments: DataFrame
    obstacles: DataFrame


def run_inventory(warehouse: Warehouse, options: InventoryOptions, *, dry_run: bool) -> Inventory:
    """Take the inventory of the segments of a warehouse.

    The files of two kinds of segments are read again: those of several formats, and those whose
    records only decompression can count. The table has the counts of all others.

    Raises:
        UsageError: the warehouse has no segments.
    """
    stamp = stamp_of(uuid.uuid4().hex, options.retention.now_ms)
    segments = computed_once(_segments(warehouse, options).withColumns(stamp))
    found = obstacles.obstacles_of_segments(segments)
    for more in (
        obstacles.obstacles_of_logs(in_one_task(warehouse.read(LOGS))),
        obstacles.obstacles_of_log_dirs(in_one_task(warehouse.read(LOG_DIRS))),
        obstacles.obstacles_of_files(in_one_task(warehouse.read(UNRECOGNIZED_FILES))),
        obstacles.obstacles_of_settings(_settings(warehouse.spark, options.gone_settings)),
    ):
        found = found.unionByName(more)
    found = computed_once(found.transform(obstacles.explained).withColumns(stamp))
    if not dry_run:
        with ThreadPoolExecutor(2) as pool:
            kept = (MIGRATION_INVENTORY, MIGRATION_OBSTACLES)
            list(pool.map(partial(_keep, warehouse), kept, (segments, found)))
    return Inventory(segments, found)


def _segments(warehouse: Warehouse, options: InventoryOptions) -> DataFrame:
    retention = options.retention
    decided = in_one_task(segments_to_decide(warehouse, retention)).transform(
        decide_retention(now_ms=retention.now_ms, rules=retention.rules)
    )
    there = in_one_task(warehouse.read(SEGMENTS)).where(F.col("vanished_at").isNull())
    return (
        there.transform(lambda rows: _with_formats(rows, decompresses=options.decompresses))
        .transform(lambda rows: with_segment_files(rows, only_found=True))
        .join(
            in_one_task(decided).select(*SEGMENT_KEYS, *_DECIDED), list(SEGMENT_KEYS), how="inner"
        )
        .transform(take_inventory)
    )


def _with_formats(segments: DataFrame, *, decompresses: bool) -> DataFrame:
    """Add ``formats`` and ``uncounted``, from the table or else from the files."""
    asked = segments.where(is_counted_again(decompresses=decompresses))
    count, size_bytes = asked.agg(F.count("*"), F.sum("valid_bytes")).collect()[0]
    if count == 0:
        return segments.transform(with_formats(None, decompresses=decompresses))
    counted = count_formats(asked, Load(count, size_bytes or 0), decompresses=decompresses)
    return segments.transform(with_formats(counted, decompresses=decompresses))


def _settings(spark: SparkSession, settings: Sequence[GoneSetting]) -> DataFrame:
    columns = "topic string, broker_id int, key string, value string, cluster string"
    return spark.createDataFrame([tuple(found) for found in settings], columns)


def _keep(warehouse: Warehouse, table: Table, rows: DataFrame) -> None:
    warehouse.create(table)
    warehouse.append(table, rows)
