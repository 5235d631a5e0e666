"""Which rows of a build's tables lie below its sources."""

from collections.abc import Iterable

from kafka_segments.engine.tables.catalog import LOG_DIRS, Table
from kafka_segments.engine.tables.statements import sql_text
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
