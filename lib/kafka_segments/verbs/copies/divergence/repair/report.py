"""What ``divergence repair`` prints."""

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import say
from kafka_segments.console.output import size_text
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import print_result
from kafka_segments.verbs.copies.divergence.repair.tasks import State

_NAMES = ("log", "from>", "until>", "state", "take from", "batches>", "bytes>", "detail")


def print_repair(rows: DataFrame, output: str) -> int:
    """Print the ranges; return how many are missing, or are of logs that were refused."""
    found = rows.agg(
        F.count_distinct("topic", "partition").alias("logs"),
        F.coalesce(F.sum("size_bytes"), F.lit(0)).alias("bytes"),
        F.count_if(F.col("state") == State.MISSING.value).alias("missing"),
        F.count_if(F.col("state") == State.REFUSED.value).alias("refused"),
    ).collect()[0]
    ordered = rows.orderBy("topic", "partition", "from_offset", "row")
    if output != "table" or found["logs"]:
        print_result(ordered, output, names=_NAMES, cells=_cells)
    say(
        f"{found['logs']} logs to repair, {size_text(found['bytes'])}; refused:"
        f" {found['refused']}, ranges that no copy has: {found['missing']}"
    )
    return int(found["missing"] + found["refused"])


def _cells(row: Row) -> tuple[str, ...]:
    return (
        f"{row['topic']}-{row['partition']}",
        str(row["from_offset"]),
        str(row["until_offset"]),
        row["state"],
        or_dash(row["copy"]),
        or_dash(row["batches"]),
        or_dash(row["size_bytes"]),
        row["detail"] or "-",
    )
