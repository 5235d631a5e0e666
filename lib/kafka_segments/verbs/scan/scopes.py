"""Which rows of a build's tables lie below its sources, and those that lie below none."""

from collections.abc import Iterable, Sequence

from pyspark.sql import functions as F

from kafka_segments.engine.tables.catalog import BUILD_TABLES, LOG_DIRS, RUNS, Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.statements import sql_text
from kafka_segments.files.storage.folder_lock import warehouse_lock
from kafka_segments.files.storage.stores import store_of
from kafka_segments.verbs.scan.entry_files import INDEX_TABLES
from kafka_segments.verbs.scan.options import single_logs


def lie_below(table: Table, sources: Iterable[str]) -> str:
    """Return the SQL condition that a row of a table of sources lies below one of them."""
    sources = list(sources)
    conditions = []
    column = "log_dir" if table in (LOG_DIRS, *INDEX_TABLES) else "path"
    for source in sources:
        text, below = sql_text(source), sql_text(source.rstrip("/") + "/")
        conditions.append(f"({column} = {text} OR startswith({column}, {below}))")
    for log_dir, topic, partition in single_logs(sources if table in INDEX_TABLES else ()):
        of_topic = "" if topic is None else f" AND topic = {sql_text(topic)}"
        of_log = f"log_dir = {sql_text(log_dir)}{of_topic} AND partition = {partition}"
        conditions.append(f"({of_log})")
    return " OR ".join(conditions)


def remove_strays(warehouse: Warehouse, sources: Sequence[str]) -> None:
    """Remove the rows that lie below none of some sources, and of no noted build's: no build would.

    In a store without locks they stay: a build that runs meanwhile, and is not noted yet, may make
    such rows. Elsewhere none runs.
    """
    if not store_of(warehouse.root).has_locks or warehouse.version(RUNS) is None:
        return
    with warehouse_lock(warehouse.root, alone=True):
        builds = warehouse.read(RUNS).where(F.col("command") == "build")
        noted = builds.select(F.explode("sources").alias("source")).distinct().collect()
        if not noted:
            return
        known = {*sources, *(row["source"] for row in noted)}
        for table in BUILD_TABLES:
            if table is RUNS or warehouse.version(table) is None:
                continue
            where = f"NOT ({lie_below(table, sorted(known))})"
            strays = warehouse.read(table).where(where)
            if not strays.isEmpty():
                warehouse.replace(table, strays.where("false"), where=where)
