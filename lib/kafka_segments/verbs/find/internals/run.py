"""Internals: read the internal topics into tables, and make the metadata's history of them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.engine.derived.file_sums import FILE_KEYS, with_file_facts
from kafka_segments.engine.derived.internal_files import known_files
from kafka_segments.engine.derived.metadata_in_tables import NoMetadataError, metadata_problems
from kafka_segments.engine.frames.engines import (
    collected_if_few,
    collected_if_so_few,
    computed_once,
    expect_files,
)
from kafka_segments.engine.frames.local_rows import local_rows, rows_in_driver
from kafka_segments.engine.frames.packing import TellLoad, tell_nobody
from kafka_segments.engine.limits import Load, Work
from kafka_segments.engine.sources.broker_identity import lies_below
from kafka_segments.engine.sources.missing import Lost, no_segments, refuse_lost
from kafka_segments.engine.tables.catalog import INTERNAL_FILES, INTERNAL_RECORDS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.engine.tables.statements import sql_text
from kafka_segments.engine.tables.table_columns import columns_of
from kafka_segments.files.storage.folder_lock import internals_lock
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.find.internals.decide.files import (
    READ_STATES,
    SAME,
    changed_logs,
    compared_with,
    files_as_read,
    files_now,
    is_looked_at,
    judged_by,
    rows_that_stay,
)
from kafka_segments.verbs.find.internals.decide.rows import (
    count_lost_logs,
    partition_name,
    sum_by_log,
)
from kafka_segments.verbs.find.internals.files import InternalFiles, Origin, find_files
from kafka_segments.verbs.find.internals.metadata.write import write_history
from kafka_segments.verbs.find.internals.tasks import bytes_left, look_at, read_records


@dataclass(frozen=True)
class InternalsOptions:
    """What is read. ``is_dry``: write no tables, and make no history."""

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


class Changes(NamedTuple):
    """What is to be done with the tables.

    Attributes:
        known: the columns of ``known_files``, of all files.
        judged: the columns of ``judged_by``, of the files below the sources.
        logs: rows of ``changed_logs``.
    """

    known: DataFrame
    judged: DataFrame
    logs: list[Row]

    def files(self) -> DataFrame:
        """Return the files that are read, and from where on."""
        return self.judged.where(F.col("state").isin(*READ_STATES))

    @property
    def changed_files(self) -> int:
        """How many files changed."""
        names = ("replaced", "new", "placed", "grown")
        return sum(len(log[name]) for log in self.logs for name in names)

    def sums(self, read: DataFrame | None, origin: Origin) -> DataFrame:
        """Return the sums of the logs below the sources, once the tables are written.

        ``read``: rows of ``files_as_read``; None: nothing changed.
        """
        changed = self.judged.where(F.col("state") != SAME).select(*FILE_KEYS)
        below = self.known.where(_is_below(origin))
        files = below.join(changed, list(FILE_KEYS), how="left_anti").drop("records_version")
        return (files if read is None else files.unionByName(read)).transform(sum_by_log)

    @property
    def only_adds(self) -> bool:
        """Whether no row of ``internal_records`` goes."""
        return not any(
            log["replaced"] or any(file["has_end"] for file in log["grown"]) for log in self.logs
        )


def run_internals(
    warehouse: Warehouse,
    options: InternalsOptions,
    caches: ExitStack,
    tell: TellLoad = tell_nobody,
) -> Reading:
    """Read what changed of the files; replace and add rows, and the history of their clusters.

    The history is written first, ``internal_records`` next, and ``internal_files`` last, because
    its rows say what is done (``known_files``). A run waits until others have ended. ``tell`` is
    told how much is read: first of the metadata log, then of the other topics.
    """
    if options.is_dry:
        return _look(warehouse, options.origin, caches)
    with internals_lock(warehouse.root):
        return _read_changed(warehouse, options.origin, caches, tell)


def _look(tables: Warehouse, origin: Origin, caches: ExitStack) -> Reading:
    """Read the files that changed, and return the sums that the tables would have."""
    found = find_files(tables.spark, origin, caches)
    changes = _changes(tables, found, origin, caches)
    rows = read_records(changes.files(), goes_on=True)
    read = rows.transform(files_as_read(changes.judged, changes.known))
    sums = changes.sums(read, origin)
    problems = tuple(map(no_segments, found.empty_sources))
    return Reading(sums, len(changes.logs), len(found.unseen), problems)


def _changes(tables: Warehouse, found: InternalFiles, origin: Origin, caches: ExitStack) -> Changes:
    """Decide what changed, and note how much is to be read.

    Raises:
        VanishedError: below a source more logs are gone than the origin allows.
    """
    # Not the table as it is read: what is persisted of that, later reads of it would get.
    known = computed_once(known_files(tables).transform(columns_of(INTERNAL_FILES)), caches)
    seen = known.where(_is_below(origin))
    if found.unseen:
        seen = seen.where(~lies_below(_folder(), found.unseen))
    compared = computed_once(found.files.transform(compared_with(seen)), caches)
    looks = computed_once(look_at(compared.where(is_looked_at())), caches)
    judged = computed_once(compared.transform(judged_by(looks)), caches)
    logs = changed_logs(judged).collect()
    if any(not log["keeps_rows"] for log in logs):
        count = count_lost_logs(found.files, found.listed, _folder(), origin.sources)
        counted = seen.transform(count).collect()
        lost = (Lost(**row.asDict()) for row in counted)
        refuse_lost(lost, most_percent=origin.most_vanished, what="logs of internal topics")
    changes = Changes(known, judged, logs)
    expect_files(changes.files().withColumn("_left", bytes_left()), Work.DECODE, by="_left")
    return changes


def _read_changed(tables: Warehouse, origin: Origin, caches: ExitStack, tell: TellLoad) -> Reading:
    for table in (INTERNAL_RECORDS, INTERNAL_FILES):
        tables.create(table)
    if not tables.version(INTERNAL_RECORDS) and tables.version(INTERNAL_FILES):
        nothing = local_rows(tables.spark, [], INTERNAL_FILES.schema)  # the records were moved away
        tables.replace(INTERNAL_FILES, nothing, where="true")
    found = find_files(tables.spark, origin, caches)
    changes = _changes(tables, found, origin, caches)
    if not tables.version(INTERNAL_FILES):  # an earlier release read these
        tables.append(INTERNAL_FILES, changes.known.where("size_bytes IS NOT NULL"))
    problems = list(map(no_segments, found.empty_sources))
    read, bare = None, _without_history(found, changes)
    if changes.logs or bare:
        files, is_metadata = changes.files(), F.col("topic") == METADATA_TOPIC
        metadata, known_tasks = _metadata_records(files.where(is_metadata), caches, tell)
        changed = {log["cluster"] for log in changes.logs if _is_of_metadata(log)}
        if changed or bare:
            _write_history(tables, changes, metadata, sorted(changed | bare), caches)
        if changes.logs:
            others = read_records(
                files.where(~is_metadata),
                goes_on=True,
                tell=lambda load, tasks: tell(load, known_tasks + tasks),  # one stage writes both
            )
            read = _write(tables, changes, metadata.unionByName(others))
    problems += _problems_below(tables, found, changes.logs)
    return Reading(
        changes.sums(read, origin), len(changes.logs), len(found.unseen), tuple(problems)
    )


def _without_history(found: InternalFiles, changes: Changes) -> set[str]:
    """Return the clusters of which no file of the metadata log is there, nor known elsewhere."""
    bare = set(found.bare_clusters)
    if not bare:
        return bare
    of_metadata = files_now(changes.judged, changes.known).where(F.col("topic") == METADATA_TOPIC)
    return bare - {row["cluster"] for row in of_metadata.select("cluster").distinct().collect()}


def _write_history(
    tables: Warehouse,
    changes: Changes,
    metadata: DataFrame,
    clusters: Sequence[str],
    caches: ExitStack,
) -> None:
    """Write the history of clusters by all of their rows, as they are once they are written."""
    records = metadata
    if tables.version(INTERNAL_RECORDS):
        kept = tables.read(INTERNAL_RECORDS).where(F.col("topic") == METADATA_TOPIC)
        records = metadata.unionByName(kept.transform(rows_that_stay(changes.judged)))
    now = files_now(changes.judged, changes.known)
    write_history(tables, records.transform(with_file_facts(now)), clusters, caches)


def _write(tables: Warehouse, changes: Changes, rows: DataFrame) -> DataFrame:
    """Write the rows of files that were read, and then what was read of which file.

    Return that: rows of ``files_as_read``.
    """
    rows, before = collected_if_few(rows), tables.version(INTERNAL_RECORDS) or 0
    where = condition_of(changes.logs)
    if where and changes.only_adds:
        tables.fill(INTERNAL_RECORDS, rows, where=where, has_none=True)
    elif where:
        tables.fill_changed(INTERNAL_RECORDS, rows, where=where)
    version = tables.version(INTERNAL_RECORDS) or 0
    if rows_in_driver(rows) is None:
        rows = tables.read(INTERNAL_RECORDS)
    noted = version if version <= before + 1 else 0  # another run may have written rows
    files = rows.transform(files_as_read(changes.judged, changes.known))
    files = files.withColumn("records_version", F.lit(noted).cast("long"))
    files = collected_if_so_few(files, changes.changed_files)
    where = condition_of(changes.logs, of_files=True)
    tables.fill_changed(INTERNAL_FILES, files, where=where)
    return files.drop("records_version")


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
    clusters |= set(found.bare_clusters)
    yield from (str(problem) for problem in problems if problem.cluster in clusters)


def _metadata_records(files: DataFrame, caches: ExitStack, tell: TellLoad) -> tuple[DataFrame, int]:
    """Return the records of the metadata log, read once, and by how many tasks."""
    counts = [0]

    def note(load: Load, tasks: int) -> None:
        counts[0] = tasks
        tell(load, tasks)

    return computed_once(read_records(files, goes_on=True, tell=note), caches), counts[0]


def condition_of(logs: Sequence[Row], *, of_files: bool = False) -> str:
    """Return the SQL condition for rows that are replaced or added, of ``internal_records``.

    ``logs``: rows of ``changed_logs``. With ``of_files`` the condition is for ``internal_files``.
    """
    same: dict[tuple[Any, ...], list[int]] = {}
    for log in logs:
        keys = tuple(log[key] for key in LOG_KEYS[:-1])
        for files in _conditions(log, of_files=of_files):
            same.setdefault((*keys, files), []).append(log["partition"])
    return " OR ".join(
        f"(cluster = {sql_text(cluster)} AND broker_id = {broker_id}"
        f" AND log_dir = {sql_text(log_dir)} AND topic = {sql_text(topic)}"
        f" AND partition IN ({', '.join(map(str, sorted(numbers)))}){files})"
        for (cluster, broker_id, log_dir, topic, files), numbers in same.items()
    )


def _conditions(log: Row, *, of_files: bool) -> Iterator[str]:
    """Yield the conditions for files of a log, each as it follows on others; "": for all."""
    if not log["keeps_rows"]:
        yield ""
        return
    names = [*log["replaced"], *log["new"]]
    if of_files:
        names += [*log["placed"], *(file["file"] for file in log["grown"])]
    if names:
        yield f" AND file IN ({', '.join(map(sql_text, sorted(names)))})"
    for file in () if of_files else log["grown"]:
        yield f" AND file = {sql_text(file['file'])} AND row >= {file['start_row']}"


def _is_of_metadata(log: Row) -> bool:
    return bool(log["topic"] == METADATA_TOPIC)


def _is_below(origin: Origin) -> Column:
    """Tell whether a file is of a log below the sources, and of a topic that is read."""
    return F.col("topic").isin(*origin.topics) & lies_below(_folder(), origin.sources)


def _folder() -> Column:
    """Return where a log lies."""
    return F.concat_ws("/", "log_dir", partition_name())
