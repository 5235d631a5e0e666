"""Read what tables say of the growth of log directories: two queries, whatever they hold."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.as_built import altered_lines
from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.derived.as_built import altered, last_builds
from kafka_segments.engine.derived.expired_but_kept import find_blocked, still_there
from kafka_segments.engine.derived.views import published
from kafka_segments.engine.derived.written_times import with_written_ms
from kafka_segments.engine.frames.collected import collect_together
from kafka_segments.engine.tables.catalog import LOG_DIRS, RETENTION_DECISIONS, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.engine.tables.last_run import of_last_run
from kafka_segments.files.storage.uris import lies_in
from kafka_segments.verbs.find.disk.decide import growth_of_tables as decide
from kafka_segments.verbs.find.disk.decide.accounts import BlockedLog, DayGrowth, TableGrowth
from kafka_segments.verbs.find.disk.judged_folders import read_dir_facts
from kafka_segments.verbs.find.disk.run import DiskUse

_MOST_BLOCKED = 1_000
_DIR_KEYS = LOG_KEYS[:3]


def read_growth(warehouse: Warehouse, use: DiskUse, *, now_ms: int) -> TableGrowth:
    """Return what tables say of the log directories of an account.

    Raises:
        UsageError: the warehouse lacks a table.
    """
    log_dirs = [one.log_dir for one in use.dirs if not use.has_only_folders(one.log_dir)]
    found = collect_together({"dirs": _known_dirs(warehouse), "builds": last_builds(warehouse)})
    tell_not_known(altered_lines(altered(warehouse, found["builds"])))
    dirs, built_ms, unknown = _matched(log_dirs, found)
    if not dirs:
        return TableGrowth(warehouse.root, {}, unknown, None, [], [], None)
    from_ms = decide.first_day_ms([now_ms, *built_ms.values()])
    found = collect_together(_figures(warehouse, list(dirs.values()), from_ms, now_ms))
    given = {known[:3]: log_dir for log_dir, known in dirs.items()}
    decided = found.get("decided")
    return TableGrowth(
        warehouse.root,
        built_ms,
        unknown,
        from_ms,
        [DayGrowth(given[row[:3]], *row[3:]) for row in found["days"]],
        [BlockedLog(given[row[:3]], *row[3:]) for row in found.get("blocked", [])],
        None if decided is None else decided[0][0],
    )


def _known_dirs(tables: Warehouse) -> DataFrame:
    columns = decide.KnownDir._fields
    return tables.read(LOG_DIRS, columns).select(*columns)


def _matched(
    log_dirs: Sequence[str], found: Mapping[str, list[Row]]
) -> tuple[dict[str, decide.KnownDir], dict[str, int], dict[str, str]]:
    """Return of log directories those that the tables know, when they were built, why others not.

    Each by the directory's path.
    """
    known = [decide.KnownDir(*row) for row in found["dirs"]]
    dirs: dict[str, decide.KnownDir] = {}
    built_ms: dict[str, int] = {}
    unknown: dict[str, str] = {}
    for log_dir in log_dirs:
        match = decide.find_dir(log_dir, read_dir_facts(log_dir), known)
        if isinstance(match, str):
            unknown[log_dir] = match
            continue
        moments = [
            row["built_ms"]
            for row in found["builds"]
            if any(lies_in(match.log_dir, source) for source in row["sources"])
        ]
        if moments:
            dirs[log_dir], built_ms[log_dir] = match, max(moments)
        else:
            unknown[log_dir] = "the tables do not tell of a build of the whole of it"
    return dirs, built_ms, unknown


def _figures(
    tables: Warehouse, dirs: Sequence[decide.KnownDir], from_ms: int, now_ms: int
) -> dict[str, DataFrame]:
    """Return the figures of log directories, by name."""
    history = published(tables, SEGMENTS.name).transform(decide.of_dirs(dirs))
    segments = history.where(F.col("vanished_at").isNull())
    written = segments.transform(with_written_ms(now_ms=now_ms))
    days = written.transform(decide.grown_by_day(from_ms=from_ms))
    figures = {"days": days.orderBy(*_DIR_KEYS, "topic", "day_ms")}
    if not tables.version(RETENTION_DECISIONS):
        return figures
    decisions = of_last_run(
        tables, RETENTION_DECISIONS, published(tables, RETENTION_DECISIONS.name)
    )
    there = decisions.transform(decide.of_dirs(dirs)).transform(still_there(segments))
    blocked = there.transform(find_blocked(now_ms=now_ms))
    figures["blocked"] = blocked.orderBy(
        F.desc("size_bytes"), *LOG_KEYS, "blocked_by_base_offset"
    ).limit(_MOST_BLOCKED)
    figures["decided"] = decisions.agg(F.unix_millis(F.max("decided_at")))
    return figures
