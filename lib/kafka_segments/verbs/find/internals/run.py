"""Internals: read the internal topics into tables, and make the metadata's history of them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.frames.packing import TellLoad, tell_nobody
from kafka_segments.engine.limits import Load
from kafka_segments.engine.sources.broker_identity import lies_below
from kafka_segments.engine.sources.missing import Lost, no_segments, refuse_lost
from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.engine.tables.metadata_in_tables import NoMetadataError, metadata_problems
from kafka_segments.engine.tables.statements import sql_text
from kafka_segments.files.storage.folder_lock import internals_lock
from kafka_segments.kafka.wire.names import METADATA_TOPIC
from kafka_segments.verbs.find.internals.decide.rows import (
    changed_files,
    count_lost_logs,
    of_changed,
    of_unchanged,
    partition_name,
    sum_by_log,
)
from kafka_segments.verbs.find.internals.files import InternalFiles, Origin, find_files
from kafka_segments.verbs.find.internals.metadata.write import write_history
from kafka_segments.verbs.find.internals.tasks import read_records

_CHANGED = StructType(
    [
        *(field for field in INTERNAL_RECORDS.schema if field.name in LOG_KEYS),
        StructField("files", ArrayType(StringType())),
    ]
)


@dataclass(frozen=True)
class InternalsOptions:
    """What is read, and the absolute URI of the tables that it goes into.

    ``is_dry``: write no tables, and make no history.
    """

    warehouse: str
    origin: Origin
    is_dry: bool = False


class Reading(NamedTuple):
    """What a run read.

    Attributes:
        sums: the columns of ``sum_by_log``, of all logs below the sources.
        changed: of how many logs files were read or are gone; the tables have the others already.
        unseen: how many folders or links were not looked into.
        problems: what the history of the metadata lacks, and the sources without any segment.
    """

    sums: DataFrame
    changed: int
    unseen: int
    problems: tuple[str, ...]


def run_internals(
    spark: SparkSession,
    options: InternalsOptions,
    caches: ExitStack,
    tell: TellLoad = tell_nobody,
) -> Reading:
    """Read the files that changed; replace their rows, and the history of their clusters.

    ``internal_records`` is written last, because its rows say what is done. A run waits until
    others have ended. ``tell`` is told how much is read: first of the metadata log, then of the
    other topics.
    """
    if options.is_dry:
        return _look(spark, options, caches)
    with internals_lock(options.warehouse):
        return _read_changed(spark, options, caches, tell)


def _look(spark: SparkSession, options: InternalsOptions, caches: ExitStack) -> Reading:
    """Read the files that changed, and return the sums that the tables would have."""
    tables, origin = Warehouse(spark, options.warehouse), options.origin
    known = _below(tables, origin)
    found = find_files(spark, origin, caches)
    changed = _changed(known, found, origin)
    of_logs = local_rows(spark, changed, _CHANGED)
    files = found.files.where("size_bytes > 0").transform(of_changed(of_logs))
    rows = known.transform(of_unchanged(of_logs)).unionByName(read_records(files))
    problems = tuple(map(no_segments, found.empty_sources))
    return Reading(rows.transform(sum_by_log), len(changed), len(found.unseen), problems)


def _changed(known: DataFrame, found: InternalFiles, origin: Origin) -> list[Row]:
    """Return the rows of ``changed_files``.

    Raises:
        VanishedError: below a source more logs are gone than the origin allows.
    """
    seen = known.where(~lies_below(_folder(), found.unseen)) if found.unseen else known
    changed = found.files.transform(changed_files(seen)).collect()
    if any(log["files"] is None for log in changed):
        counted = seen.transform(count_lost_logs(found.files, _folder(), origin.sources)).collect()
        lost = (Lost(**row.asDict()) for row in counted)
        refuse_lost(lost, most_percent=origin.most_vanished, what="logs of internal topics")
    return changed


def _read_changed(
    spark: SparkSession, options: InternalsOptions, caches: ExitStack, tell: TellLoad
) -> Reading:
    tables, origin = Warehouse(spark, options.warehouse), options.origin
    tables.create(INTERNAL_RECORDS)
    found = find_files(spark, origin, caches)
    changed = _changed(_below(tables, origin), found, origin)
    problems = list(map(no_segments, found.empty_sources))
    if changed:
        of_logs = local_rows(spark, changed, _CHANGED)
        files = found.files.where("size_bytes > 0").transform(of_changed(of_logs))
        of_metadata = files.where(F.col("topic") == METADATA_TOPIC)
        metadata, known_tasks = _metadata_records(of_metadata, caches, tell)
        clusters = sorted({row["cluster"] for row in changed if row["topic"] == METADATA_TOPIC})
        if clusters:
            kept = _known(tables).where(F.col("topic") == METADATA_TOPIC)
            unchanged = kept.transform(of_unchanged(of_logs))
            write_history(tables, metadata.unionByName(unchanged), clusters, caches)
        others = read_records(
            files.where(F.col("topic") != METADATA_TOPIC),
            tell=lambda load, tasks: tell(load, known_tasks + tasks),  # one stage writes both
        )
        rows = metadata.unionByName(others)
        tables.fill_changed(INTERNAL_RECORDS, rows, where=condition_of(changed))
    problems += _problems_below(tables, found, changed)
    sums = _below(tables, origin).transform(sum_by_log)
    return Reading(sums, len(changed), len(found.unseen), tuple(problems))


def _problems_below(
    tables: Warehouse, found: InternalFiles, changed: Sequence[Row]
) -> Iterator[str]:
    """Yield what the histories lack of clusters with a metadata log that is, or was, there."""
    try:
        problems = metadata_problems(tables.root)
    except NoMetadataError as error:
        yield f"{error}: what histories of metadata lack is not known"
        return
    if not problems:
        return
    of_metadata = found.files.where(F.col("topic") == METADATA_TOPIC)
    clusters = {row["cluster"] for row in of_metadata.select("cluster").distinct().collect()}
    clusters |= {row["cluster"] for row in changed if row["topic"] == METADATA_TOPIC}
    yield from (str(problem) for problem in problems if problem.cluster in clusters)


def _metadata_records(files: DataFrame, caches: ExitStack, tell: TellLoad) -> tuple[DataFrame, int]:
    """Return the records of the metadata log, read once, and by how many tasks."""
    counts = [0]

    def note(load: Load, tasks: int) -> None:
        counts[0] = tasks
        tell(load, tasks)

    return computed_once(read_records(files, tell=note), caches), counts[0]


def condition_of(changed: Sequence[Row]) -> str:
    """Return the SQL condition for rows of files that changed.

    ``changed``: rows of ``changed_files``.
    """
    partitions: dict[tuple[Any, ...], list[int]] = {}
    for log in changed:
        keys = tuple(log[key] for key in LOG_KEYS[:-1])
        files = None if log["files"] is None else tuple(log["files"])
        partitions.setdefault((*keys, files), []).append(log["partition"])
    return " OR ".join(
        f"(cluster = {sql_text(cluster)} AND broker_id = {broker_id}"
        f" AND log_dir = {sql_text(log_dir)} AND topic = {sql_text(topic)}"
        f" AND partition IN ({', '.join(map(str, sorted(numbers)))}){_and_in(files)})"
        for (cluster, broker_id, log_dir, topic, files), numbers in partitions.items()
    )


def _and_in(files: tuple[str, ...] | None) -> str:
    return "" if files is None else f" AND file IN ({', '.join(map(sql_text, files))})"


def _below(tables: Warehouse, origin: Origin) -> DataFrame:
    """Return the rows that the tables have now of the logs below the sources."""
    of_topics = F.col("topic").isin(*origin.topics)
    return _known(tables).where(of_topics & lies_below(_folder(), origin.sources))


def _known(tables: Warehouse) -> DataFrame:
    """Return the rows that the tables have now; Spark is not asked where none was ever written."""
    if not tables.version(INTERNAL_RECORDS):
        return local_rows(tables.spark, [], INTERNAL_RECORDS.schema)
    return tables.read(INTERNAL_RECORDS)


def _folder() -> Column:
    """Return where a log lies."""
    return F.concat_ws("/", "log_dir", partition_name())
