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
from kafka_segments.verbs.find.internals.groups.decide.states import NOT_KNOWN

_NAMES = (
    *("partition>", "broker>", "group", "type", "state", "members>", "records>", "live>"),
    *("bytes>", "live bytes>", "cleanable>", "load"),
)


def print_groups(groups: DataFrame, output: str) -> int:
    """Print partitions, each with its groups; return how many rows someone must look at.

    These are partitions that do not load whole, and groups whose state is not known.
    """
    with ExitStack() as caches:
        groups = computed_once(groups, caches)
        largest = [F.desc_nulls_first(F.when(F.col("group_id").isNotNull(), F.col("bytes")))]
        ordered = groups.orderBy("cluster", "partition", *LOG_KEYS, *largest, "group_id")
        print_result(ordered, output, names=_NAMES, cells=_cells)
        is_whole = F.col("group_id").isNull()
        of_whole = (F.when(is_whole, F.col(name)) for name in ("bytes", "cleanable_bytes"))
        total = groups.agg(
            F.count_if(is_whole),
            F.count_if(is_whole & (F.col("load") != LOADS)),
            *(F.coalesce(F.sum(value), F.lit(0)) for value in of_whole),
            F.count_if(F.col("group_state") == NOT_KNOWN),
        ).collect()[0]
    unknown = f"; the state of {total[4]} groups is not known" if total[4] else ""
    say(
        f"{total[0]} partitions on brokers, {total[1]} of them do not load whole; {total[2]} bytes,"
        f" of which compaction could take {total[3]}{unknown}"
    )
    return int(total[1] + total[4])


def _cells(row: Row) -> tuple[str, ...]:
    is_whole = row["group_id"] is None
    return (
        str(row["partition"]),
        str(row["broker_id"]),
        "(all)" if is_whole else row["group_id"],
        or_dash(row["group_type"]),
        or_dash(row["group_state"]),
        or_dash(row["members"]),
        *(str(row[name]) for name in ("records", "live_records", "bytes", "live_bytes")),
        str(row["cleanable_bytes"]),
        f"{row['load']}{_why(row)}",
    )


def _why(row: Row) -> str:
    if row["load"] == LOADS:
        return "" if row["reason"] is None else f": {row['reason']}"
    first = row["first_refused_offset"]
    place = "" if first is None else f", the first at offset {first}"
    return f": {row['refused_records']} records{place}: {row['reason']}"
