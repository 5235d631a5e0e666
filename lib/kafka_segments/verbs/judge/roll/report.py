"""What ``roll`` prints."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row

from kafka_segments.console.lines import say
from kafka_segments.console.output import utc
from kafka_segments.console.tables import print_result
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.tables.decisions import Decision
from kafka_segments.kafka.text.plain_text import first_of
from kafka_segments.verbs.judge.retention.report_settings import setting_text

_DECISION = (
    *("topic-partition", "base offset>", "decision", "bytes>", "by time from (UTC)", "used>"),
    "reason",
)
_CUT = (
    *("topic-partition", "setting", "today", "segments>", "at least", "at most", "files>"),
    *("maps>", "index bytes>", "overshoot bytes", "overshoot"),
)
_SETTINGS = (
    *("segment_bytes", "segment_ms", "segment_jitter_ms", "segment_index_bytes"),
    *("index_interval_bytes", "message_timestamp_type", "cleanup_policy"),
)
_OF_COMPACTION = ("max_compaction_lag_ms",)
_TOPICS_NAMED = 5
_COUNTS = ("segments", "segments_least", "segments_most")


def print_roll(decisions: DataFrame, output: str, configs: TopicConfigs) -> None:
    """Print which active segments roll, what is nearest for the others, and by which settings."""
    ordered = decisions.orderBy("log_dir", "topic", "partition", "base_offset")
    shown = print_result(ordered, output, names=_DECISION, cells=_decision)
    _print_settings([row for row in shown if row["decision"] != Decision.UNKNOWN], configs)


def print_what_if(cuts: DataFrame, output: str, configs: TopicConfigs) -> None:
    """Print what other settings would have given, log by log, and the settings besides these."""
    ordered = cuts.orderBy("log_dir", "topic", "partition", "setting")
    shown = print_result(ordered, output, names=_CUT, cells=_cut)
    _print_settings([row for row in shown if row["not_decided"] is None], configs)


def _print_settings(shown: Sequence[Row], configs: TopicConfigs) -> None:
    """Print on stderr the settings that decided, once for topics that share them."""
    sharing: dict[tuple[str, ...], list[str]] = {}
    logs = dict.fromkeys((row["cluster"], row["topic"], row["broker_id"]) for row in shown)
    for cluster, topic, broker_id in logs:
        settings = configs.of(cluster).resolve(topic, broker_id)
        is_compacted = "compact" in settings["cleanup_policy"].value
        names = _SETTINGS + _OF_COMPACTION if is_compacted else _SETTINGS
        lines = tuple(setting_text(name, settings[name]) for name in names)
        topics = sharing.setdefault(lines, [])
        if topic not in topics:
            topics.append(topic)
    for lines, topics in sharing.items():
        say(f"settings of {first_of(topics, _TOPICS_NAMED)}:")
        for line in lines:
            say(f"  {line}")


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
