"""What ``internals tier`` prints."""

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import say
from kafka_segments.console.output import size_text, utc
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import print_result
from kafka_segments.verbs.find.internals.tier.decide.tier import sum_findings
from kafka_segments.verbs.find.internals.tier.run import Tier

_FINDINGS = (
    *("topic-partition", "segment id", "offsets", "state", "since (UTC)"),
    *("stored bytes>", "findings", "detail"),
)
_REBUILT = ("topic-partition", "segment id", "offsets", "bytes>", "by")
_GAPS = ("topic-partition", "copies>", "from offset>", "to offset>")


def print_tier(tier: Tier, output: str) -> int:
    """Print the segments with findings, or all as JSON lines or CSV; return how many findings."""
    segments = tier.segments
    shown = segments.where(F.size("findings") > 0) if output == "table" else segments
    ordered = shown.orderBy("cluster", "topic", "partition", "start_offset", "segment_id")
    print_result(ordered, output, names=_FINDINGS, cells=_segment)
    states = segments.groupBy("state").count().orderBy("state").collect()
    told = ", ".join(f"{row['count']} {row['state'] or 'never announced'}" for row in states)
    say(f"remote segments: {told or 'none'}")
    found = segments.transform(sum_findings).orderBy("finding").collect()
    for row in found:
        size = "" if row["bytes"] == 0 else f", {size_text(row['bytes'])} in the tier"
        say(f"{row['finding']}: {row['segments']} segments{size}")
    return sum(row["segments"] for row in found)


def _segment(row: Row) -> tuple[str, ...]:
    return (
        f"{row['topic']}-{row['partition']}",
        row["segment_id"],
        f"{or_dash(row['start_offset'])} to {or_dash(row['end_offset'])}",
        or_dash(row["state"]),
        utc(row["state_ms"]),
        or_dash(row["stored_bytes"]),
        ", ".join(row["findings"]),
        row["detail"] or "",
    )


def print_gaps(gaps: DataFrame, output: str) -> int:
    """Print the ranges of offsets of local logs that no copy has; they are no findings."""
    ordered = gaps.orderBy("cluster", "topic", "partition", "from_offset")
    print_result(ordered, output, names=_GAPS, cells=_gap)
    return 0


def _gap(row: Row) -> tuple[str, ...]:
    numbers = (str(row[name]) for name in ("copies", "from_offset", "to_offset"))
    return f"{row['topic']}-{row['partition']}", *numbers


def print_rebuilt(unclaimed: DataFrame, segments: DataFrame, output: str) -> int:
    """Print the segments that the rebuilt records announce; return how many are left out."""
    announced = segments.select(
        *("topic", "partition", "topic_id", "segment_id", "found.start_offset"),
        *("found.end_offset", "found.size_bytes", F.col("found.source").alias("by"), "path"),
    )
    print_result(announced, output, names=_REBUILT, cells=_rebuilt)
    count = segments.count()
    lacking = unclaimed.count() - count
    say(
        f"{count} segments that no record claims, {2 * count} records announce them; {lacking}"
        " whose objects do not say enough, or are not all there: `internals tier` shows them"
    )
    return lacking


def _rebuilt(row: Row) -> tuple[str, ...]:
    return (
        f"{row['topic']}-{row['partition']}",
        row["segment_id"],
        f"{row['start_offset']} to {row['end_offset']}",
        str(row["size_bytes"]),
        row["by"],
    )
