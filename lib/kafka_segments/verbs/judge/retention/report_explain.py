"""What ``retention explain`` prints of one log."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Row

from kafka_segments.console.output import duration, print_text, utc
from kafka_segments.engine.derived.topic_configs import Setting, TopicConfigs, settings_that_count
from kafka_segments.engine.tables.decisions import Decision
from kafka_segments.verbs.judge.retention.decide.other_rules import (
    LEFT_OVER,
    METADATA_LOG,
    OTHER_RULES,
)
from kafka_segments.verbs.judge.retention.report import moment
from kafka_segments.verbs.judge.retention.report_settings import setting_text

MOST_SEGMENTS = 200
_OTHER_RULES = frozenset(rules.code for rules in OTHER_RULES)
_WITHOUT_SETTINGS = {
    METADATA_LOG: "a topic's settings do not hold for it",
    LEFT_OVER: "the settings of the topic that it is of are not known",
}


def print_explain(rows: Sequence[Row], configs: TopicConfigs, *, now_ms: int) -> None:
    """Print a log's settings, what becomes of each segment, and what holds those that stay.

    ``rows`` are what ``run_explain`` returned; the first ``MOST_SEGMENTS`` are shown. A log that
    lies on several brokers is shown once for each.
    """
    shown = None
    for row in rows[:MOST_SEGMENTS]:
        if shown != (row["cluster"], row["broker_id"], row["log_dir"]):
            shown = (row["cluster"], row["broker_id"], row["log_dir"])
            settings = configs.of(row["cluster"]).resolve(row["topic"], row["broker_id"])
            for line in _log(row, settings, now_ms):
                print_text(line)
        print_text("")
        for line in _segment(row, now_ms):
            print_text(line)
    if len(rows) > MOST_SEGMENTS:
        print_text("")
        print_text("… and more: --output csv prints them all")


def _log(row: Row, settings: Mapping[str, Setting], now_ms: int) -> list[str]:
    head = f"{row['topic']}-{row['partition']} in {row['log_dir']}, {utc(now_ms)} UTC"
    if row["reason_code"] in _WITHOUT_SETTINGS:
        return [head, f"  {_WITHOUT_SETTINGS[row['reason_code']]}"]
    watermark, start = row["high_watermark"], row["log_start_offset"]
    return [
        head,
        *(
            f"  {setting_text(key, setting)}"
            for key, setting in settings_that_count(settings).items()
        ),
        f"  high watermark: {'not known, taken as the end' if watermark is None else watermark}",
        f"  log start offset: {'its first segment' if start is None else start}",
    ]


def _segment(row: Row, now_ms: int) -> list[str]:
    lines = [
        f"segment {row['base_offset']}: {row['decision']}, {row['size_bytes']} bytes,"
        f" its time is {utc(row['largest_timestamp_ms'])} ({row['largest_timestamp_ms']})",
        f"  why: {row['reason']} [{row['reason_code']}]",
    ]
    if row["decision"] == Decision.DELETE:
        lines.append(f"  its files are removed {utc(row['frees_disk_at_ms'])}")
        return lines
    if row["reason_code"] in _OTHER_RULES:
        lines.append(f"  to free it: {row['remedy']}")
        return lines
    offset, pin = row["pinned_by_offset"], row["pinned_by_timestamp_ms"]
    by = "its mtime" if offset is None else f"its offset {offset}"
    if row["blocked_by_base_offset"] is not None:
        lines.append(
            f"  held by: segment {row['blocked_by_base_offset']}, by {by} of {utc(pin)} ({pin})"
        )
    else:
        lines.append(f"  pinned by: {by}")
    if row["waiting_bytes"]:
        lines.append(f"  {row['waiting_bytes']} bytes of younger segments wait behind it")
    goes = row["deletes_at_ms"]
    lines.append(
        "  goes: never, as the log and its settings are"
        if goes is None
        else f"  goes: {moment(goes)}, in {duration(goes - now_ms)}"
    )
    lines.append(f"  to free it: {row['remedy']}")
    return lines
