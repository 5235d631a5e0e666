"""Say where the offsets of one group went, from the segments of ``__consumer_offsets``."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import METADATA_TOPICS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.find.lag.decide.facts import Place
from kafka_segments.verbs.find.lag.decide.whereabouts import Rules
from kafka_segments.verbs.find.lag.explained_rows import COLUMNS, explained_rows
from kafka_segments.verbs.find.lag.group_reading import GroupRead, read_clusters
from kafka_segments.verbs.find.search.log_tables import LogChoice, LogTables
from kafka_segments.verbs.find.search.named_logs import refuse_absent


@dataclass(frozen=True)
class ExplainOptions:
    """Which group is asked about.

    Attributes:
        choice: The partitions that are told; none: all of the topics that the group reads.
        group: The group.
        retention_ms: offsets.retention.minutes in ms; None: not known.
        most_commits: How many of the last records of each partition are told.
    """

    choice: LogChoice
    group: str
    retention_ms: int | None = None
    most_commits: int = 5


def run_explain(warehouse: Warehouse, options: ExplainOptions, caches: ExitStack) -> DataFrame:
    """Say where the offsets of a group went, a row for each partition of the topics it reads.

    Says what was not read.

    Raises:
        UsageError: the tables have no segments of ``__consumer_offsets``, no such group, or none of
            a topic or partition that is asked for.
    """
    choice = options.choice
    read = read_clusters(warehouse, choice.cluster, options.group, caches)
    topics = {topic for one in read for topic in _topics(one)}
    refuse_absent(warehouse.root, choice, also=topics)
    asked = LogChoice(tuple(topics | set(choice.topics)), (), choice.cluster, choice.broker_id)
    logs = _logs(LogTables(warehouse, asked, caches)) if asked.topics else []
    deletions = _deletions(warehouse, asked.topics)
    rows: list[tuple[Any, ...]] = []
    for one in read:
        own = {
            (log["topic"], log["partition"]): log for log in logs if log["cluster"] == one.cluster
        }
        places = sorted(filter(_chosen(choice), {*own, *one.records.commits, *one.records.pending}))
        rules = Rules(options.retention_ms, deletions.get(one.cluster, {}))
        rows += explained_rows(options.group, one, places, own, rules, options.most_commits)
    return local_rows(warehouse.spark, rows, COLUMNS)


def _topics(read: GroupRead) -> set[str]:
    """Return the topics that a group has a commit of, or whose members subscribe them."""
    records = read.records
    subscribed = records.states[-1].subscribed if records.states else None
    return {*(topic for topic, _ in (*records.commits, *records.pending)), *(subscribed or ())}


def _chosen(choice: LogChoice) -> Callable[[Place], bool]:
    def is_chosen(place: Place) -> bool:
        topic, partition = place
        is_asked = not choice.topics or topic in choice.topics
        return is_asked and (not choice.partitions or partition in choice.partitions)

    return is_chosen


def _logs(tables: LogTables) -> list[Row]:
    names = ("cluster", "topic", "partition", "log_start_offset", "log_end_offset", "doubt")
    return tables.replicas().select(*names).collect()


def _deletions(
    tables: Warehouse, topics: Sequence[str]
) -> Mapping[str, Mapping[str, Sequence[int]]]:
    """Return when topics were deleted, by cluster and name, as far as metadata is at hand."""
    found: dict[str, dict[str, list[int]]] = {}
    if tables.version(METADATA_TOPICS) is None:
        return found
    ended = tables.read(METADATA_TOPICS).where(F.col("until_ms").isNotNull())
    for row in ended.where(F.col("topic").isin(*topics)).collect():
        of_cluster = found.setdefault(row["cluster"], {})
        of_cluster.setdefault(row["topic"], []).append(row["until_ms"])
    return found
