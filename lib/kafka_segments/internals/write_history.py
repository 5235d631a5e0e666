"""Write the history of clusters' metadata: fold the best replica of each, fill the tables."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import reduce

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.internals.decide.history_start import (
    MetadataLog,
    Snapshot,
    applied_from,
    choose_start,
)
from kafka_segments.internals.decide.rows import HELD, sum_metadata_logs
from kafka_segments.internals.metadata_history import PROBLEMS
from kafka_segments.internals.tasks_history import fold_history
from kafka_segments.spark.held import held
from kafka_segments.tables.catalog import METADATA_TABLES, Table
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.keys import LOG_KEYS
from kafka_segments.tables.statements import in_any

_MOST_TOLD = 20


def write_history(
    tables: Warehouse, records: DataFrame, clusters: Sequence[str], caches: ExitStack
) -> list[str]:
    """Fold the metadata logs of some clusters, and replace their rows of the metadata tables.

    ``records``: the rows of ``internal_records`` of all metadata logs. Return in words what the
    history lacks.
    """
    of_clusters = records.where(F.col("cluster").isin(*clusters))
    history, problems = fold_best_replicas(of_clusters, clusters, caches)

    def write(table: Table) -> None:
        tables.create(table)
        rows = tables.read(table).limit(0) if history is None else rows_of(history, table)
        tables.fill(table, rows, where=in_any("cluster", clusters))

    with ThreadPoolExecutor(len(METADATA_TABLES)) as pool:  # each is several short queries
        list(pool.map(write, METADATA_TABLES))
    return problems


def fold_best_replicas(
    records: DataFrame, clusters: Sequence[str], caches: ExitStack
) -> tuple[DataFrame | None, list[str]]:
    """Fold the best replica of each cluster's metadata log (``choose_start``).

    ``records``: rows of ``internal_records``, of these clusters alone. Return the columns of
    ``fold_history``, cached until ``caches`` closes, or None if no replica gives any; and in words
    what the history lacks.
    """
    problems, starts = [], []
    logs = [_metadata_log(row) for row in records.transform(sum_metadata_logs).collect()]
    for cluster in clusters:
        replicas = [log for log in logs if log.keys[0] == cluster]
        start = choose_start(replicas)
        if start is None:
            problems.append(_no_start(cluster, replicas))
        else:
            starts.append(start)
    if not starts:
        return None, problems
    applied = [records.transform(applied_from(start)) for start in starts]
    history = held(fold_history(reduce(DataFrame.unionByName, applied)), caches)
    for row in history.where(F.col("table") == PROBLEMS).take(_MOST_TOLD):
        found = json.loads(row["values"])["problem"]
        problems.append(f"cluster {row['cluster'] or '(no name)'}: {found}")
    return history, problems


def _metadata_log(row: Row) -> MetadataLog:
    keys = tuple(row[key] for key in LOG_KEYS)
    return MetadataLog(
        keys=keys,
        first_offset=row["first_offset"],
        last_offset=row["last_offset"],
        leader_epoch=row["leader_epoch"],
        snapshots=tuple(
            Snapshot(one.end_offset, one.file, one.ms, keys) for one in row["snapshots"]
        ),
    )


def rows_of(history: DataFrame, table: Table) -> DataFrame:
    """Return the rows of a metadata table out of a history."""
    values = StructType([f for f in table.schema if f.name not in ("cluster", *HELD)])
    return (
        history.where(F.col("table") == table.name)
        .withColumn("values", F.from_json("values", values))
        .select("cluster", "values.*", *HELD)
    )


def _no_start(cluster: str, logs: Sequence[MetadataLog]) -> str:
    firsts = [log.first_offset for log in logs if log.first_offset is not None]
    begins = f"goes on from offset {min(firsts)}" if firsts else "has no records"
    return (
        f"cluster {cluster or '(no name)'}: its metadata cannot be told: the log {begins}, and no"
        " whole snapshot ends there or behind it. Add the log directory of another controller or"
        " broker as --source"
    )
