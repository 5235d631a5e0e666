"""Latency: read the batch headers of the topics whose brokers stamped append times."""

from contextlib import ExitStack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.frames.packing import TellLoad, tell_nobody
from kafka_segments.engine.limits import Load
from kafka_segments.engine.rows.table_reads import read_segments
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.verbs.find.latency.decide import decide_latency, only_stamped, only_wrapped
from kafka_segments.verbs.find.latency.tasks import read_wrapper_times
from kafka_segments.verbs.find.search.log_tables import READING, LogChoice, LogTables

_COLUMNS = (
    *("path", "topic", "magic", "timestamp_type", "is_control", "has_delete_horizon"),
    *("record_count", "base_timestamp_ms", "max_timestamp_ms", "error"),
)


def run_latency(
    warehouse: Warehouse,
    options: LogChoice,
    caches: ExitStack,
    tell: TellLoad = tell_nobody,
) -> DataFrame:
    """Measure broker latency of the chosen logs; return the columns of ``decide_latency``.

    One replica of each partition is read: of its segments with append times the batch headers,
    and the compressed batches v1. ``tell``: is told how much tasks read for both, in one stage.
    """
    loads: list[Load] = []
    tasks: list[int] = []

    def note(load: Load, of_tasks: int) -> None:
        loads.append(load)
        tasks.append(of_tasks)

    also = (*READING, "codecs", "timestamp_types")
    tables = LogTables(warehouse, options, caches, also=also)
    replicas = tables.replicas().select(*LOG_KEYS)
    segments = (
        tables.segments_as_built()
        .transform(only_stamped)
        .join(replicas, list(LOG_KEYS), how="left_semi")
    )
    batches = segments.transform(
        read_segments(rows="batches", columns=_COLUMNS, check="headers", tell=note)
    )
    wrapped = read_wrapper_times(segments.transform(only_wrapped), tell=note).select(
        "path", F.lit(1).alias("magic"), "base_timestamp_ms", "max_timestamp_ms"
    )
    if loads:
        tell(Load(*map(sum, zip(*loads, strict=True))), sum(tasks))
    told = batches.where("magic >= 2 OR error IS NOT NULL").unionByName(
        wrapped, allowMissingColumns=True
    )
    clusters = segments.select("path", "cluster", "topic", "is_active", "damage")
    return told.drop("topic").join(clusters, "path", how="inner").transform(decide_latency())
