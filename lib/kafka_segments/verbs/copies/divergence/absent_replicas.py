"""Say of which replicas that the metadata logs among copies name no copy is at hand."""

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.derived.cluster_names import lines_of_clusters
from kafka_segments.engine.derived.replicas_at_hand import with_logs_at_hand
from kafka_segments.kafka.text.plain_text import first_of
from kafka_segments.verbs.copies.divergence.decide.copies import Match
from kafka_segments.verbs.copies.divergence.decide.matching import is_matched
from kafka_segments.verbs.copies.divergence.policies.read import MetadataHistory

_MOST_BROKERS = _MOST_LOGS = 8


def by_broker(logs: DataFrame) -> DataFrame:
    """Return what tells whose a log is, see ``with_logs_at_hand``.

    Needs: rows of ``listed_logs``.
    """
    return logs.select(
        "cluster", F.col("node_id").alias("broker_id"), "topic", "partition", "topic_id"
    )


def tell_absent_replicas(
    history: MetadataHistory,
    logs: DataFrame,
    unknown: str,
    *,
    match: Match = Match.BOTH,
    asked: Collection[str] = (),
) -> None:
    """Say of each cluster of which replicas no log is at hand, and what is not known without them.

    Nothing is said where no metadata log is at hand.

    Needs: ``logs``: rows of ``listed_logs``; ``unknown``: in words; ``asked``: folders of
        partitions, only these count; empty: all.
    """
    if history.named is None:
        return
    log = F.concat_ws("-", "topic", F.col("partition").cast("string"))
    named = history.named.where(is_matched(match)).withColumn("log", log)
    if asked:
        named = named.where(F.col("log").isin(*asked))
    found = named.transform(with_logs_at_hand(by_broker(logs)))
    absent = found.select("cluster", F.explode("absent").alias("broker_id"), "log")
    names = F.sort_array(F.collect_list("log")).alias("logs")
    rows = absent.groupBy("cluster", "broker_id").agg(names).orderBy("cluster", "broker_id")
    brokers: dict[str, list[str]] = {}
    for cluster, broker, of_broker in rows.collect():
        told = f"broker {broker} ({first_of(of_broker, _MOST_LOGS)})"
        brokers.setdefault(cluster or "", []).append(told)
    lines = (
        (
            cluster,
            f"not known: of {first_of(told, _MOST_BROKERS)}, whose replicas the metadata log names,"
            f" no copy is at hand: {unknown}; add their disks as --copy",
        )
        for cluster, told in brokers.items()
    )
    tell_not_known(lines_of_clusters(lines, history.clusters))
