"""What ``internals`` prints."""

import json
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import print_line, say
from kafka_segments.console.output import size_text, utc
from kafka_segments.console.tables import or_dash, print_result
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.verbs.find.internals.decide.transactions import HANGING, NOT_KNOWN, OVERDUE
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
_OPEN = (
    *("topic-partition", "producer>", "transactional id", "state", "since (UTC)", "offset>"),
    *("held>", "held bytes>", "uncleaned>", "status"),
)
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
    sums = reading.sums.persist()
    try:
        if is_shown:
            ordered = sums.orderBy("topic", "partition", *LOG_KEYS)
            print_result(ordered, output, names=_SUMS, cells=_sum)
        total = sums.agg(
            F.count("*"),
            F.coalesce(F.sum("records"), F.lit(0)),
            F.coalesce(F.sum("unreadable"), F.lit(0)),
            F.coalesce(F.sum("findings"), F.lit(0)),
        ).collect()[0]
    finally:
        sums.unpersist()
    for problem in reading.problems:
        say(f"{problem}")
    if reading.unseen:
        say(
            f"{reading.unseen} folders or links not looked into: `kafka-segments build` names them"
            " in table unrecognized_files"
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


def print_transactions(opened: DataFrame, output: str) -> int:
    """Print open transactions, and commands that end hanging ones; return how many are findings."""
    opened = opened.persist()
    try:
        ordered = opened.orderBy("since_ms", "topic", "partition", "producer_id")
        shown = print_result(ordered, output, names=_OPEN, cells=_open)
        found = opened.where(F.col("status").isin(HANGING, OVERDUE, NOT_KNOWN)).count()
        total = opened.count()
    finally:
        opened.unpersist()
    commands = [row["command"] for row in shown if row["command"] is not None]
    for command in commands:
        print_line(f"{command}")
    if commands:
        say(
            "the commands abort what nothing else ends: readers of committed records never get the"
            " records of these transactions, and get on with those behind them"
        )
    say(f"{total} open transactions, {found} that someone must look at")
    return found


def _open(row: Row) -> tuple[str, ...]:
    first = ", holds the last stable offset" if row["is_first"] else ""
    return (
        f"{row['topic']}-{row['partition']}",
        str(row["producer_id"]),
        or_dash(row["transactional_id"]),
        f"{or_dash(row['state'])}{', forgotten' if row['is_forgotten'] else ''}",
        utc(row["since_ms"]),
        str(row["first_offset"]),
        str(row["held_offsets"]),
        size_text(row["held_bytes"]),
        _uncleaned(row),
        row["problem"] or f"{row['status']}{first}",
    )


def _uncleaned(row: Row) -> str:
    """Return how many bytes compaction cannot reach; a dash where there is no compaction."""
    if row["cleanup_policy"] is None:
        return "not known"
    return "-" if row["uncleaned_bytes"] is None else size_text(row["uncleaned_bytes"])
