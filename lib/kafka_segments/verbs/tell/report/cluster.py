"""What the report says of the cluster, if the warehouse has the tables of `internals`."""

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.engine.derived.first_look_only import FirstLookOnlyError
from kafka_segments.engine.frames.collected import collect_together
from kafka_segments.engine.tables import catalog
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.messages.records import TRANSACTIONS_TOPIC
from kafka_segments.verbs.find.internals.metadata.decide.changes import decide_changes, steps_of
from kafka_segments.verbs.find.internals.transactions.run import (
    TransactionsOptions,
    run_transactions,
)
from kafka_segments.verbs.find.search.log_tables import LogChoice
from kafka_segments.verbs.tell.report.decide import cluster as decide_cluster
from kafka_segments.verbs.tell.report.decide.overview import DAY_MS

CHANGES_DAYS = 7
_MOST_BROKERS = 1_000


@dataclass(frozen=True)
class ClusterFacts:
    """What the metadata says as of its last record; there may be more rows than are kept here.

    ``totals`` None: there is no metadata. ``transactions`` None: the coordinator's log was not
    read, or ``not_known`` says why it is not known which are open.
    """

    totals: Row | None
    leaders: list[Row]
    ill: list[Row]
    changes: list[Row]
    transactions: list[Row] | None
    not_known: str | None = None


def gather_cluster(tables: Warehouse, *, now_ms: int, rows: int) -> ClusterFacts | None:
    """Gather what the cluster wrote about itself; None: the warehouse has no tables of that."""
    has_metadata = bool(tables.version(catalog.METADATA_PARTITIONS))  # 0: it has no rows
    found = collect_together(_metadata(tables, now_ms, rows)) if has_metadata else {}
    opened, not_known = None, None
    try:
        opened = _transactions(tables, now_ms, rows)
    except FirstLookOnlyError as error:
        not_known = str(error)
    if not found and opened is None and not_known is None:
        return None
    return ClusterFacts(
        totals=next(iter(found.get("totals", [])), None),
        leaders=found.get("leaders", []),
        ill=found.get("ill", []),
        changes=found.get("changes", []),
        transactions=opened,
        not_known=not_known,
    )


def _metadata(tables: Warehouse, now_ms: int, rows: int) -> dict[str, DataFrame]:
    configs, partitions = map(tables.read, (catalog.METADATA_CONFIGS, catalog.METADATA_PARTITIONS))
    held = "until_offset IS NULL"
    brokers = tables.read(catalog.METADATA_BROKERS).where(held)
    judged = partitions.where(held).transform(
        decide_cluster.judge_partitions(configs.where(held), brokers)
    )
    changes = steps_of(configs, partitions).transform(
        decide_changes(since_ms=now_ms - CHANGES_DAYS * DAY_MS)
    )
    keys = ("cluster", "topic", "partition")
    return {
        "totals": judged.transform(decide_cluster.count_partitions),
        "leaders": judged.transform(decide_cluster.count_leaders(brokers))
        .orderBy("cluster", "node_id")
        .limit(_MOST_BROKERS),
        "ill": judged.where(decide_cluster.is_ill())
        .orderBy(F.desc("is_offline"), F.desc("is_under_min_isr"), *keys)
        .limit(rows),
        "changes": decide_cluster.last_changes(changes, rows=rows),
    }


def _transactions(tables: Warehouse, now_ms: int, rows: int) -> list[Row] | None:
    if not tables.version(catalog.INTERNAL_RECORDS):
        return None
    records = tables.read(catalog.INTERNAL_RECORDS)
    if records.where(F.col("topic") == TRANSACTIONS_TOPIC).isEmpty():
        return None
    with ExitStack() as caches:
        opened = run_transactions(tables, TransactionsOptions(LogChoice(), now_ms), caches)
        return opened.orderBy("since_ms", "topic", "partition", "producer_id").limit(rows).collect()
