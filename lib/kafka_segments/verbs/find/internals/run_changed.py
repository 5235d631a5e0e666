"""Read from the tables what metadata clusters had at an offset or a moment, and what changed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.console.lines import say
from kafka_segments.console.not_known import tell_metadata_problems, tell_not_known
from kafka_segments.engine.derived.cluster_names import cluster_in_words
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.catalog import (
    METADATA_CONFIGS,
    METADATA_PARTITIONS,
    METADATA_TABLES,
    Table,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.missing import require_values
from kafka_segments.errors import UsageError
from kafka_segments.kafka.text.moments import moment_text
from kafka_segments.verbs.find.internals.decide.rows import (
    HELD,
    begins_and_ends,
    described,
    state_at,
)
from kafka_segments.verbs.find.internals.metadata.as_of import AsOf
from kafka_segments.verbs.find.internals.metadata.decide.changes import (
    decide_changes,
    later_begins,
    steps_of,
)

_AT = StructType(row_fields("cluster string, at_offset long"))


@dataclass(frozen=True)
class StateOptions:
    """Which metadata is asked for; ``cluster`` None: that of all."""

    as_of: AsOf
    cluster: str | None = None


@dataclass(frozen=True)
class ChangesOptions:
    """Which changes are asked for: since a moment in ms, or (None) all; see ``StateOptions``."""

    since_ms: int | None = None
    cluster: str | None = None


def run_state(warehouse: Warehouse, options: StateOptions) -> DataFrame:
    """Return the metadata that held as of an offset or a moment: the columns of ``described``.

    Raises:
        UsageError: the tables have no history of metadata, or it begins later.
    """
    _refuse_absent(warehouse, options.cluster)
    read = _reader(warehouse, options.cluster)
    as_of = options.as_of
    # An earlier release made some of them alone.
    tables = [table for table in METADATA_TABLES if warehouse.version(table) is not None]
    if not tables:
        raise UsageError(_no_metadata(warehouse.root, options.cluster))
    held = (read(table).select("cluster", *HELD) for table in tables)
    told = begins_and_ends(reduce(DataFrame.unionByName, held), at_ms=as_of.ms).collect()
    if not told:
        raise UsageError(_no_metadata(warehouse.root, options.cluster))
    at: dict[str, Any] = {
        row["cluster"]: as_of.offset if as_of.ms is None else row["at_offset"] for row in told
    }
    for row in told:
        name = row["cluster"]
        if at[name] < row["first_offset"]:
            raise UsageError(
                f"--at {as_of}: the history of cluster {cluster_in_words(name)} begins at offset"
                f" {row['first_offset']}, {moment_text(row['first_ms'])}"
            )
    tell_metadata_problems(warehouse.root, cluster=options.cluster, at_offset=at)
    asked = local_rows(warehouse.spark, sorted(at.items()), _AT)
    states = (
        read(table).transform(state_at(asked)).transform(described(table.name)) for table in tables
    )
    return reduce(DataFrame.unionByName, states)


def run_changed(warehouse: Warehouse, options: ChangesOptions) -> DataFrame:
    """Return the changes of configs, leaders and replicas: the columns of ``decide_changes``.

    Changes before a history that begins with a snapshot are not known: that is said, and is a
    finding where changes since an earlier moment are asked for.

    Raises:
        UsageError: the tables have no history of metadata, or none of the cluster.
    """
    _refuse_absent(warehouse, options.cluster)
    read = _reader(warehouse, options.cluster)
    tell_metadata_problems(warehouse.root, cluster=options.cluster)
    steps = steps_of(read(METADATA_CONFIGS), read(METADATA_PARTITIONS))
    for row in steps.transform(later_begins).collect():
        _tell_begin(row, options.since_ms)
    return steps.transform(decide_changes(since_ms=options.since_ms))


def _tell_begin(begin: Row, since_ms: int | None) -> None:
    at = f"offset {begin['first_offset']}, {moment_text(begin['first_ms'])}"
    line = (
        f"cluster {cluster_in_words(begin['cluster'])}: not known what changed before {at}: its"
        " history begins there, with a snapshot"
    )
    if since_ms is None:
        say(line)
    elif since_ms < begin["first_ms"]:
        tell_not_known((line,))


def _refuse_absent(tables: Warehouse, cluster: str | None) -> None:
    """Refuse a cluster of which no table has metadata, where there are any."""
    there = [table for table in METADATA_TABLES if tables.version(table) is not None]
    if cluster is not None and there:
        clusters = (tables.read(table, ("cluster",)) for table in there)
        known = reduce(DataFrame.unionByName, clusters)
        require_values(tables.root, "metadata of cluster", (cluster,), known)


def _reader(tables: Warehouse, cluster: str | None) -> Callable[[Table], DataFrame]:
    """Return a function that reads the rows of a table, of one cluster or of all."""

    def read(table: Table) -> DataFrame:
        if tables.version(table) is None:
            raise UsageError(_no_metadata(tables.root, cluster))
        rows = tables.read(table)
        return rows if cluster is None else rows.where(F.col("cluster") == cluster)

    return read


def _no_metadata(warehouse: str, cluster: str | None) -> str:
    of_cluster = "" if cluster is None else f" of cluster {cluster}"
    return (
        f"{warehouse} has no metadata{of_cluster}: run `kafka-segments internals --source` on a log"
        " directory with __cluster_metadata-0"
    )
