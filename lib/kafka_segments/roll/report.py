"""What ``roll`` prints."""

from pyspark.sql import DataFrame, Row

from kafka_segments.console.output import utc
from kafka_segments.console.tables import print_result

_DECISION = (
    *("topic-partition", "base offset>", "decision", "bytes>", "by time from (UTC)", "used>"),
    "reason",
)
_CUT = (
    *("topic-partition", "setting", "today", "segments>", "at least", "at most", "files>"),
    *("maps>", "index bytes>", "overshoot bytes", "overshoot"),
)
_COUNTS = ("segments", "segments_least", "segments_most")


def print_roll(decisions: DataFrame, output: str) -> None:
    """Print which active segments roll, and what is nearest for the others."""
    ordered = decisions.orderBy("log_dir", "topic", "partition", "base_offset")
    print_result(ordered, output, names=_DECISION, cells=_decision)


def print_what_if(cuts: DataFrame, output: str) -> None:
    """Print what other settings would have given, log by log."""
    ordered = cuts.orderBy("log_dir", "topic", "partition", "setting")
    print_result(ordered, output, names=_CUT, cells=_cut)


def _decision(row: Row) -> tuple[str, ...]:
    share = row["nearest_share"]
    return (
        f"{row['topic']}-{row['partition']}",
        str(row["base_offset"]),
        row["decision"],
        str(row["size_bytes"]),
        utc(row["rolls_from_ms"]),
        "-" if share is None else f"{share:.1%}",
        row["reason"],
    )


def _cut(row: Row) -> tuple[str, ...]:
    name = f"{row['topic']}-{row['partition']}"
    if row["not_decided"] is not None:
        return (name, f"{row['setting']}: {row['not_decided']}", *["-"] * 9)
    seconds = row["retention_overshoot_ms"] // 1000
    return (
        name,
        row["setting"],
        str(row["segments_today"]),
        *(str(row[name]) for name in _COUNTS),
        str(row["files"]),
        str(row["memory_maps"]),
        str(row["index_bytes"]),
        str(row["retention_overshoot_bytes"]),
        f"{seconds} s",
    )
