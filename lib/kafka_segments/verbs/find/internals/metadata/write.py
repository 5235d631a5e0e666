"""Write the history of clusters' metadata: fold the best replica of each, fill the tables."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import reduce

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.engine.derived.metadata_in_tables import MetadataProblem
from kafka_segments.engine.frames.driver_rows import count_set
from kafka_segments.engine.frames.engines import collected_if_so_few, computed_once
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import METADATA_PROBLEMS, METADATA_TABLES, Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.engine.tables.statements import in_any
from kafka_segments.kafka.messages.records import decode_internal
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS
from kafka_segments.kafka.text.names import LOG_SUFFIX, METADATA_TOPIC
from kafka_segments.verbs.find.internals.decide.rows import HELD
from kafka_segments.verbs.find.internals.metadata.copies import (
    Copy,
    copies_of,
    without_denied,
    without_uncommitted,
)
from kafka_segments.verbs.find.internals.metadata.decide.history_start import (
    HistoryStart,
    MetadataLog,
    Snapshot,
    applied_from,
    choose_start,
    runs_of,
)
from kafka_segments.verbs.find.internals.metadata.decide.logs import sum_metadata_logs
from kafka_segments.verbs.find.internals.metadata.history import PROBLEMS
from kafka_segments.verbs.find.internals.metadata.tasks import fold_history

_MOST_TOLD = 20
_ENDS = "the history of its metadata ends at offset {}, and the state from there on is not known:"


def write_history(
    tables: Warehouse, records: DataFrame, clusters: Sequence[str], caches: ExitStack
) -> None:
    """Fold the metadata logs of some clusters, and replace their rows of the metadata tables.

    ``records``: the rows of ``internal_records`` of all metadata logs, with what is known of their
    files. What the history lacks goes
    into table ``metadata_problems``. Tables that have these rows already are not written.
    """
    of_clusters = records.where(F.col("cluster").isin(*clusters))
    history, problems = fold_best_replicas(of_clusters, clusters, caches)
    where = in_any("cluster", clusters)
    names = [table.name for table in METADATA_TABLES]
    counts = {} if history is None else count_set(history, names)

    def write(table: Table) -> None:
        tables.create(table)
        count = counts.get(table.name, 0)
        if history is None or not count:
            rows = local_rows(tables.spark, [], table.schema)
        else:
            rows = collected_if_so_few(rows_of(history, table), count)
        tables.fill_changed(table, rows, where=where, may_be_same=True)

    def write_problems() -> None:
        tables.create(METADATA_PROBLEMS)
        rows = [
            (problem.cluster, number, problem.at_offset, problem.problem)
            for number, problem in enumerate(problems)
        ]
        told = local_rows(tables.spark, rows, METADATA_PROBLEMS.schema)
        tables.fill_changed(METADATA_PROBLEMS, told, where=where, may_be_same=True)

    with ThreadPoolExecutor(len(METADATA_TABLES) + 1) as pool:  # each is several short queries
        written = pool.submit(write_problems)
        list(pool.map(write, METADATA_TABLES))
        written.result()


def fold_best_replicas(
    records: DataFrame, clusters: Sequence[str], caches: ExitStack
) -> tuple[DataFrame | None, list[MetadataProblem]]:
    """Fold the best replica of each cluster's metadata log (``choose_start``).

    ``records``: as of ``write_history``, of these clusters alone. Return the columns of
    ``fold_history``, cached until ``caches`` closes, or None if no replica gives any; and what the
    history lacks.
    """
    whole = copies = copies_of(records.transform(sum_metadata_logs).collect())
    counted, problems = without_denied(records, copies)
    counted, uncommitted = without_uncommitted(counted, copies)
    problems += uncommitted
    if problems or counted is not records:
        copies = copies_of(counted.transform(sum_metadata_logs).collect())
    starts = []
    for cluster in clusters:
        of_cluster = [copy for copy in copies if copy.row["cluster"] == cluster]
        start = choose_start([_metadata_log(copy.row) for copy in of_cluster])
        if start is None:
            problems.append(MetadataProblem(cluster, None, _no_start(of_cluster)))
        else:
            starts.append(start)
            problems += _unclear_end(start, of_cluster) or _missing_end(
                start, [copy for copy in whole if copy.row["cluster"] == cluster]
            )
    if not starts:
        return None, problems
    applied = [counted.transform(applied_from(start)) for start in starts]
    history = computed_once(fold_history(reduce(DataFrame.unionByName, applied)), caches)
    told = history.where(F.col(PROBLEMS).isNotNull())
    for row in told.select("cluster", "from_offset", f"{PROBLEMS}.problem").take(_MOST_TOLD):
        problems.append(MetadataProblem(*row))
    return history, problems


def _unclear_end(start: HistoryStart, copies: Sequence[Copy]) -> list[MetadataProblem]:
    """Say why the history ends before its log does, or before what cannot be read of it."""
    (copy,) = (copy for copy in copies if copy.keys == start.log.keys)
    row, cluster = copy.row, start.log.keys[0]
    if start.until is not None:
        what = row["unclear_problem"] or f"is of {_type_of(row['unclear_value'])}, which is unknown"
        text = (
            f"{_ENDS.format(start.until)} the record at offset {row['unclear_from']} in the copy of"
            f" {copy.text()} cannot be understood: {what}. A newer Kafka may have written it: use a"
            " kafka-segments that knows its release"
        )
        return [MetadataProblem(cluster, start.until, text)]
    if row["damage"] is not None:
        damage = row["damage"]
        text = (
            f"{_ENDS.format(start.end_offset)} {damage['file']} in the copy of {copy.text()} cannot"
            f" be read from byte {damage['position']} on: {damage['problem']}"
        )
        return [MetadataProblem(cluster, start.end_offset, text)]
    return []


def _missing_end(start: HistoryStart, copies: Sequence[Copy]) -> Iterator[MetadataProblem]:
    """Say what beside the copies tells that there were records behind the end of the history.

    What was written behind what was read is none of it. An entry of the leader epochs is written
    with the first batch of its epoch.

    ``copies``: with all of their records, be they committed or not.
    Source: KafkaRaftLog.createNewSnapshot, UnifiedLog.append.
    """
    log = start.log
    (own,) = (copy for copy in copies if copy.keys == log.keys)
    read = -1 if own.row["last_offset"] is None else own.row["last_offset"]
    end = max(start.end_offset, read + 1)
    lasts = [copy.files.last for copy in copies if copy.is_read_up and copy.files.last is not None]
    later = [last for last in lasts if last.epoch >= log.leader_epoch and last.start_offset > end]
    snapshots = [one for copy in copies for one in copy.row["snapshots"]]
    snapshot = max(snapshots, key=lambda one: one["end_offset"], default=None)
    what = None
    if later:
        what = f"{LEADER_EPOCHS} has epoch {later[0].epoch} from offset {later[0].start_offset} on"
    elif snapshot is not None and -1 < read < snapshot["end_offset"] - 1:
        what = f"{snapshot['file']} is there, and of the log nothing from offset {read + 1} on"
    elif own.is_read_up and not any(name.endswith(LOG_SUFFIX) for name in own.files.sizes):
        what = "no segment of it is there"
    if what is not None:
        text = (
            f"{_ENDS.format(end)} the copy of {own.text()} lacks its last records: {what}. Add the"
            " log directory of another controller or broker as --source"
        )
        yield MetadataProblem(log.keys[0], end, text)


def _type_of(value: bytes | None) -> str:
    """Name the type of a record by its value, which is of none that is known."""
    type_id = decode_internal(METADATA_TOPIC, None, value).type_id
    return "no type that can be read" if type_id is None else f"type {type_id}"


def _metadata_log(row: Row) -> MetadataLog:
    keys = tuple(row[key] for key in LOG_KEYS)
    unclear = row["unclear_from"], row["unclear_to"]
    return MetadataLog(
        keys=keys,
        first_offset=row["first_offset"],
        last_offset=row["last_offset"],
        leader_epoch=row["leader_epoch"],
        snapshots=tuple(
            Snapshot(one.end_offset, one.file, one.ms, keys) for one in row["snapshots"]
        ),
        unclear=None if None in unclear else unclear,
        runs=runs_of(row["steps"] or (), row["last_offset"]),
    )


def rows_of(history: DataFrame, table: Table) -> DataFrame:
    """Return the rows of a metadata table out of a history."""
    return history.where(F.col(table.name).isNotNull()).select("cluster", f"{table.name}.*", *HELD)


def _no_start(copies: Sequence[Copy]) -> str:
    firsts = [one.row["first_offset"] for one in copies if one.row["first_offset"] is not None]
    begins = f"goes on from offset {min(firsts)}" if firsts else "has no records"
    unclear = sum(one.row["unclear_snapshots"] for one in copies)
    but = f" ({unclear} have records that cannot be understood)" if unclear else ""
    return (
        f"its metadata cannot be told: the log {begins}, and no whole snapshot ends there or behind"
        f" it{but}. Add the log directory of another controller or broker as --source"
    )
