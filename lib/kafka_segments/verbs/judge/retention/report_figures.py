"""What ``retention`` gives Prometheus: what goes and what stays of each topic of a broker."""

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.prometheus import Figure, Metric, broker_label
from kafka_segments.engine.tables.decisions import Decision
from kafka_segments.verbs.judge.retention.decide.reasons import NOT_KNOWN

_KEY = ("cluster", "broker_id", "topic")
_SEGMENTS = Metric(
    "retention_segments", "Segments that retention deletes now, or keeps.", (*_KEY, "decision")
)
_BYTES = Metric("retention_bytes", "Bytes of these segments.", (*_KEY, "decision"))
_UNSURE = Metric(
    "retention_unsure_segments",
    "Segments that stay, as what would let them go is not known.",
    _KEY,
)
_DECISIONS = (Decision.DELETE, Decision.KEEP)


def topics_of(decisions: DataFrame) -> list[Row]:
    """Return what was decided of each topic of a broker, counted.

    Needs: rows of ``retention_decisions``.
    Gives: cluster, broker_id, topic, segments_delete, segments_keep, bytes_delete, bytes_keep,
        unsure.
    """
    counted = [F.count_if(F.col("reason_code").isin(*NOT_KNOWN)).alias("unsure")]
    for decision in _DECISIONS:
        is_so = F.col("decision") == decision
        size = F.sum(F.when(is_so, F.col("size_bytes")).otherwise(0))
        counted += [
            F.count_if(is_so).alias(f"segments_{decision}"),
            size.alias(f"bytes_{decision}"),
        ]
    return decisions.groupBy(*_KEY).agg(*counted).orderBy(*_KEY).collect()


def figures_of(topics: Sequence[Row]) -> Iterator[Figure]:
    """Yield the figures of topics; what goes of one is not known where it is not of a segment."""
    for row in topics:
        labels = (row["cluster"], broker_label(row["broker_id"]), row["topic"])
        yield Figure(_UNSURE, labels, row["unsure"])
        for decision in _DECISIONS:
            for metric, name in ((_SEGMENTS, "segments"), (_BYTES, "bytes")):
                value = None if row["unsure"] else row[f"{name}_{decision}"]
                yield Figure(metric, (*labels, decision.value), value)
