"""What ``lag`` gives Prometheus: figures of each group, or share group, and topic."""

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.console.prometheus import Figure, Metric
from kafka_segments.verbs.find.lag.decide.commits import NO_FINDINGS
from kafka_segments.verbs.find.lag.decide.share import NO_SHARE_FINDINGS, NOT_BEGUN

_KEY = ("cluster", "group_id", "topic")
_LABELS = ("cluster", "group", "topic")
_PARTITIONS = Metric("lag_partitions", "Partitions of the topic that the group read.", _LABELS)
_FINDINGS = Metric(
    "lag_partitions_to_look_at",
    "Of these, those that are neither up to date nor simply behind.",
    _LABELS,
)
_OFFSETS = Metric("lag_offsets", "Offsets that the group is behind, of all partitions.", _LABELS)
_GONE = Metric("lag_gone_offsets", "Unread offsets that are gone, of all partitions.", _LABELS)
_TIME = Metric(
    "lag_time_max_seconds",
    "Lag in time of the partition where it is most; at least, where unread offsets are gone.",
    _LABELS,
)
_SHARE_PARTITIONS = Metric(
    "share_lag_partitions", "Partitions of the topic that the share group has a state of.", _LABELS
)
_SHARE_NOT_BEGUN = Metric(
    "share_lag_partitions_not_begun",
    "Of these, those of which the share group has read nothing yet: they have no lag.",
    _LABELS,
)
_SHARE_FINDINGS = Metric(
    "share_lag_partitions_to_look_at",
    "Of these, those that are neither up to date, nor simply behind, nor not begun.",
    _LABELS,
)
_SHARE_OFFSETS = Metric(
    "share_lag_offsets",
    "Offsets that the share group is behind, of all partitions that it has begun.",
    _LABELS,
)


def figures_of(lags: DataFrame) -> Iterator[Figure]:
    """Yield the figures of groups; where one partition's is not known, the group's is not.

    Needs: the columns of ``decide_lag``.
    """
    is_found = ~F.col("status").isin(*NO_FINDINGS)
    groups = lags.groupBy(*_KEY).agg(
        F.count("*").alias("partitions"),
        F.count_if(is_found).alias("found"),
        F.count("offset_lag").alias("known_offsets"),
        F.try_sum("offset_lag").alias("offset_lag"),
        F.count("gone_offsets").alias("known_gone"),
        F.try_sum("gone_offsets").alias("gone_offsets"),
        F.count("time_lag_ms").alias("known_times"),
        F.max("time_lag_ms").alias("time_lag_ms"),
    )
    for row in groups.orderBy(*_KEY).collect():
        labels = tuple(row[name] or "" for name in _KEY)
        has_offsets = row["known_offsets"] == row["partitions"]
        has_gone = row["known_gone"] == row["partitions"]
        has_times = row["known_times"] == row["partitions"]
        yield Figure(_PARTITIONS, labels, row["partitions"])
        yield Figure(_FINDINGS, labels, row["found"])
        yield Figure(_OFFSETS, labels, row["offset_lag"] if has_offsets else None)
        yield Figure(_GONE, labels, row["gone_offsets"] if has_gone else None)
        yield Figure(_TIME, labels, row["time_lag_ms"] / 1000 if has_times else None)


def share_figures_of(lags: DataFrame) -> Iterator[Figure]:
    """Yield the figures of share groups; the lag is not known where that of one partition is not.

    Where nothing of a topic is begun there is no figure of its lag.

    Needs: the columns of ``decide_share_lag``.
    """
    groups = lags.groupBy(*_KEY).agg(
        F.count("*").alias("partitions"),
        F.count_if(F.col("status") == NOT_BEGUN).alias("not_begun"),
        F.count_if(~F.col("status").isin(*NO_SHARE_FINDINGS)).alias("found"),
        F.count("offset_lag").alias("known_offsets"),
        F.try_sum("offset_lag").alias("offset_lag"),
    )
    for row in groups.orderBy(*_KEY).collect():
        labels = tuple(row[name] or "" for name in _KEY)
        begun = row["partitions"] - row["not_begun"]
        yield Figure(_SHARE_PARTITIONS, labels, row["partitions"])
        yield Figure(_SHARE_NOT_BEGUN, labels, row["not_begun"])
        yield Figure(_SHARE_FINDINGS, labels, row["found"])
        if begun:
            is_known = row["known_offsets"] == begun
            yield Figure(_SHARE_OFFSETS, labels, row["offset_lag"] if is_known else None)
