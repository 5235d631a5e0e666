"""What ``internals`` prints."""

import json
from contextlib import ExitStack
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import say
from kafka_segments.console.not_known import say_not_known
from kafka_segments.console.output import utc
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import print_result
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.verbs.find.internals.run import Reading

_NUMBERS = {
    "records": "records",
    "tombstones": "tombstones",
    "unknown": "unknown",
    "unreadable": "unreadable",
    "snapshots": "snapshots",
    "from": "from_offset",
    "to": "to_offset",
}
_SUMS = ("topic-partition", "broker>", *(f"{name}>" for name in _NUMBERS), "from (UTC)", "to (UTC)")
_STATE = ("kind", "name", "state", "since", "since (UTC)")
_CHANGES = ("offset>", "time (UTC)", "kind", "name", "before", "after", "detail")
_LEFT_OUT = {
    "feature": ("name",),
    "controller": ("features", "incarnation_id"),
    "client-quota": ("entity", "key"),
    "broker": ("node_id", "features", "incarnation_id", "log_dirs"),
    "topic": ("topic",),
    "partition": ("topic", "topic_id", "partition", "directories"),
}
_KINDS = (
    *("feature", "controller", "broker", "config", "topic", "partition"),
    *("acl", "client-quota", "scram-credential", "delegation-token"),
)


def print_internals(reading: Reading, output: str, *, is_shown: bool = True) -> int:
    """Print a row for each log; return the number of findings, which stderr sums up.

    Without ``is_shown`` only stderr is written to.
    """
    with ExitStack() as caches:
        sums = computed_once(reading.sums, caches)
        if is_shown:
            ordered = sums.orderBy("topic", "partition", *LOG_KEYS)
            print_result(ordered, output, names=_SUMS, cells=_sum)
        total = sums.agg(
            F.count("*"),
            F.coalesce(F.sum("records"), F.lit(0)),
            F.coalesce(F.sum("unreadable"), F.lit(0)),
            F.coalesce(F.sum("findings"), F.lit(0)),
        ).collect()[0]
    for problem in reading.problems:
        say_not_known(f"{problem}")
    if reading.unseen:
        say_not_known(
            f"{reading.unseen} folders, links or odd files not looked into: `kafka-segments build`"
            " names them in table unrecognized_files"
        )
    say(
        f"{total[0]} logs, {reading.changed} of them read, {total[1]} records; {total[2]} places"
        f" unreadable, {total[3]} of them findings: see column problem of table internal_records"
    )
    return int(total[3]) + len(reading.problems) + reading.unseen


def _sum(row: Row) -> tuple[str, ...]:
    return (
        f"{row['topic']}-{row['partition']}",
        str(row["broker_id"]),
        *(or_dash(row[name]) for name in _NUMBERS.values()),
        utc(row["from_ms"]),
        utc(row["to_ms"]),
    )


def print_state(state: DataFrame, output: str) -> None:
    """Print the metadata that held: features, brokers, configs, topics, partitions."""
    turn = F.array_position(F.array(*map(F.lit, _KINDS)), F.col("kind"))
    ordered = state.orderBy("cluster", turn, "name")
    print_result(ordered, output, names=_STATE, cells=_state)


def _state(row: Row) -> tuple[str, ...]:
    least = "by " if row["is_from_snapshot"] else ""
    values = json.loads(row["state"])
    text = values["value"] if row["kind"] == "config" else _shown(row["kind"], values)
    return row["kind"], row["name"], text, f"{least}{row['from_offset']}", utc(row["from_ms"])


def _shown(kind: str, values: dict[str, Any]) -> str:
    """Return values as text, without those that are empty, usual, or part of the name."""
    return " ".join(
        f"{name}={_short(value)}"
        for name, value in values.items()
        if value is not False
        and value not in ([], None, "recovered")
        and name not in _LEFT_OUT.get(kind, ())
    )


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def print_changes(changes: DataFrame, output: str) -> None:
    """Print changes of configs, leaders and replicas, in the order of the metadata log."""
    ordered = changes.orderBy("cluster", "offset", "kind", "name")
    print_result(ordered, output, names=_CHANGES, cells=_change)


def _change(row: Row) -> tuple[str, ...]:
    return (
        str(row["offset"]),
        utc(row["ms"]),
        row["kind"],
        row["name"],
        or_dash(row["before"]),
        or_dash(row["after"]),
        or_dash(row["detail"]),
    )
