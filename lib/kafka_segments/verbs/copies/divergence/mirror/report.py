"""What ``divergence mirror`` prints."""

from pyspark.sql import Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import say
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import print_result
from kafka_segments.verbs.copies.divergence.mirror.decide.kinds import MirrorKind
from kafka_segments.verbs.copies.divergence.mirror.run import Mirrored

_NAMES = (
    *("log", "from>", "until>", "mirror from>", "until>", "records>"),
    *("difference", "what was found"),
)


def print_mirror(found: Mirrored, output: str) -> int:
    """Print the rows; return how many findings there are.

    A table leaves out mirrored ranges; JSON and CSV have all rows, with the offsets of both.
    """
    counted = found.rows.agg(
        F.count_if("is_finding").alias("findings"),
        F.sum(F.when(F.col("kind") == MirrorKind.MIRRORED, F.col("records"))).alias("mirrored"),
        F.sum(F.when(F.col("kind") == MirrorKind.BEHIND, F.col("records"))).alias("behind"),
    ).collect()[0]
    by_log = ("topic", "partition", "row")
    differing = found.rows.where(F.col("kind") != MirrorKind.MIRRORED)
    if output != "table":
        print_result(found.rows.orderBy(*by_log), output, names=_NAMES, cells=_cells)
    elif not differing.isEmpty():
        ordered = differing.orderBy(F.col("is_finding").desc(), *by_log)
        print_result(ordered, output, names=_NAMES, cells=_cells)
    say(
        f"{found.logs} logs with a mirror, {found.unmirrored} without;"
        f" {counted['mirrored'] or 0} records are in both in the same order,"
        f" {counted['behind'] or 0} are not mirrored yet; findings: {counted['findings']}"
    )
    return int(counted["findings"])


def _cells(row: Row) -> tuple[str, ...]:
    offsets = ("from_offset", "until_offset", "mirror_from", "mirror_until", "records")
    return (
        f"{row['topic']}-{row['partition']}",
        *(or_dash(row[name]) for name in offsets),
        row["kind"] if row["is_finding"] else f"({row['kind']})",
        row["detail"],
    )
