"""What ``internals groups`` prints."""

from contextlib import ExitStack

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import say
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import print_result
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.verbs.find.internals.groups.decide.groups import LOADS

_NAMES = (
    *("partition>", "broker>", "group", "type", "state", "members>", "records>", "live>"),
    *("bytes>", "live bytes>", "cleanable>", "load"),
)


def print_groups(groups: DataFrame, output: str) -> int:
    """Print partitions, each with its groups; return how many partitions do not load whole."""
    with ExitStack() as caches:
        groups = computed_once(groups, caches)
        largest = [F.desc_nulls_first(F.when(F.col("group_id").isNotNull(), F.col("bytes")))]
        ordered = groups.orderBy("cluster", "partition", *LOG_KEYS, *largest, "group_id")
        print_result(ordered, output, names=_NAMES, cells=_cells)
        whole = groups.where(F.col("group_id").isNull())
        total = whole.agg(
            F.count("*"),
            F.count_if(F.col("load") != LOADS),
            *(F.coalesce(F.sum(name), F.lit(0)) for name in ("bytes", "cleanable_bytes")),
        ).collect()[0]
    say(
        f"{total[0]} partitions on brokers, {total[1]} of them do not load whole; {total[2]} bytes,"
        f" of which compaction could take {total[3]}"
    )
    return int(total[1])


def _cells(row: Row) -> tuple[str, ...]:
    is_whole = row["group_id"] is None
    why = "" if row["load"] == LOADS else _why(row)
    return (
        str(row["partition"]),
        str(row["broker_id"]),
        "(all)" if is_whole else row["group_id"],
        or_dash(row["group_type"]),
        or_dash(row["group_state"]),
        or_dash(row["members"]),
        *(str(row[name]) for name in ("records", "live_records", "bytes", "live_bytes")),
        str(row["cleanable_bytes"]),
        f"{row['load']}{why}",
    )


def _why(row: Row) -> str:
    first = row["first_refused_offset"]
    place = "" if first is None else f", the first at offset {first}"
    return f": {row['refused_records']} records{place}: {row['reason']}"
