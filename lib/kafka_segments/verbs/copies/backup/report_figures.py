"""What ``backup verify`` gives Prometheus: how many logs of each topic a backup holds."""

from collections.abc import Iterator

from pyspark.sql import functions as F

from kafka_segments.console.prometheus import Figure, Metric, counted_as_whole
from kafka_segments.verbs.copies.backup.decide.verdicts import BackupVerdict
from kafka_segments.verbs.copies.backup.run import Verified

_LOGS = Metric(
    "backup_logs", "Logs of the cluster, by what the backup holds of them.", ("topic", "verdict")
)
_ONLY_THERE = Metric("backup_only_there_logs", "Logs that only the backup has.", ())
_MOMENT = Metric(
    "backup_moment_timestamp_seconds",
    "The moment that the backup is judged by, since 1970: as it was given, else as its records"
    " tell.",
    (),
)
_UNKNOWN = BackupVerdict.UNKNOWN


def figures_of(verified: Verified) -> Iterator[Figure]:
    """Yield the figures of a backup; where a verdict is not known, no other count is 0."""
    counts = verified.rows.groupBy("topic", "verdict").agg(F.count("*").alias("logs")).collect()
    topics: dict[str, dict[str, int]] = {}
    for row in counts:
        topics.setdefault(row["topic"] or "", {})[row["verdict"]] = row["logs"]
    for topic in sorted(topics):
        for verdict in BackupVerdict:
            found = topics[topic].get(verdict, 0)
            is_whole = verdict == _UNKNOWN or not (verified.unread or _UNKNOWN in topics[topic])
            count = counted_as_whole(found, is_whole=is_whole)
            yield Figure(_LOGS, (topic, verdict.value), count)
    yield Figure(_ONLY_THERE, (), verified.only_there)
    yield Figure(_MOMENT, (), verified.moment.ms / 1000)
