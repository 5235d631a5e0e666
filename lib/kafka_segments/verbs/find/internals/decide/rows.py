"""Decisions over rows of internal topics: damage, sums by log, state."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.sources.broker_identity import lies_below
from kafka_segments.engine.sources.lost_log_dirs import lost_log_dirs
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import minus
from kafka_segments.kafka.messages.metadata_image import ENTRIES, TOPIC

HELD = ("from_offset", "from_ms", "until_offset", "until_ms", "is_from_snapshot")


def count_lost_logs(
    files: DataFrame, listed: DataFrame, folder: Column, sources: Sequence[str]
) -> Transform:
    """Count below each source the logs that are known, and those of which no file was found.

    So are those of each log directory that is none any more, see ``lost_log_dirs``.

    Needs: rows of ``internal_files``; ``files``: rows of files; ``listed``: rows of their listing;
        ``folder``: where a log lies.
    Gives: the columns of ``sources.missing.Lost``.
    """
    place = list(LOG_KEYS[2:])
    there = files.select(*place, F.lit(0).alias("lost")).distinct()
    of_source = F.coalesce(*(F.when(lies_below(folder, [one]), F.lit(one)) for one in sources))

    def transform(known: DataFrame) -> DataFrame:
        logs = known.select(*place, of_source.alias("source")).distinct()
        marked = logs.join(there, place, how="left")
        counts = (F.count("*").alias("known"), F.count_if(F.col("lost").isNull()).alias("lost"))
        by_dir = marked.groupBy("log_dir").agg(*counts).transform(lost_log_dirs(listed))
        return marked.groupBy("source").agg(*counts).unionByName(by_dir)

    return transform


def sum_by_log(files: DataFrame) -> DataFrame:
    """Sum up what was read of each log.

    Needs: rows of ``internal_files``.
    Gives: the log's keys, records, tombstones, unknown (of kinds that are not known), unreadable
        (rows with a problem), findings (of these, all but batches that are being written),
        snapshots (files), from_offset, to_offset, from_ms, to_ms (of the segments' records).
    """
    counts = ("records", "tombstones", "unknown", "unreadable")
    being_written = F.count_if(F.col("is_active") & F.col("is_torn"))
    return files.groupBy(*LOG_KEYS).agg(
        *(F.sum(name).alias(name) for name in counts),
        (F.sum("unreadable") - being_written).alias("findings"),
        F.count_if("is_snapshot").alias("snapshots"),
        F.min("from_offset").alias("from_offset"),
        F.max("to_offset").alias("to_offset"),
        F.min("from_ms").alias("from_ms"),
        F.max("to_ms").alias("to_ms"),
    )


def begins_and_ends(rows: DataFrame, *, at_ms: int | None) -> DataFrame:
    """Return where each cluster's history begins, and the offset that a moment stands for.

    That is the last offset before the first change after the moment; ``at_ms`` None: no moment.

    Needs: rows of metadata tables (cluster and columns of ``HELD``).
    Gives: cluster, first_offset, first_ms, at_offset.
    """
    later = [
        F.min(F.when(F.col(f"{end}_ms") > at_ms, F.col(f"{end}_offset")))
        for end in ("from", "until")
        if at_ms is not None
    ]
    last = F.lit(2**63 - 1)
    at_offset = F.coalesce(minus(F.least(*later), 1), last) if later else last
    return rows.groupBy("cluster").agg(
        F.min("from_offset").alias("first_offset"),
        F.min_by("from_ms", "from_offset").alias("first_ms"),
        at_offset.alias("at_offset"),
    )


def state_at(at: DataFrame) -> Transform:
    """Keep the rows of a metadata table that held once the record at an offset was applied.

    ``at``: cluster, at_offset; other clusters are left out.
    """
    has_begun = F.col("from_offset") <= F.col("at_offset")
    has_ended = F.coalesce(F.col("until_offset") <= F.col("at_offset"), F.lit(False))

    def transform(rows: DataFrame) -> DataFrame:
        joined = rows.join(F.broadcast(at), "cluster", how="inner")
        return joined.where(has_begun & ~has_ended).select(*rows.columns)

    return transform


def described(name: str) -> Transform:
    """Describe the rows of a metadata table in the form that all these tables share.

    Gives: cluster, kind (topic, partition, config, broker, feature, or an entry's own), name,
        state (JSON of the other columns), from_offset, from_ms, is_from_snapshot.
    """
    if name == ENTRIES:
        return _described_entries
    kind = name.removeprefix("metadata_").removesuffix("s")
    names = {
        "topic": F.col("topic"),
        "partition": partition_name(),
        "config": config_name(),
        "broker": F.col("node_id").cast("string"),
        "feature": F.col("name"),
    }

    def transform(rows: DataFrame) -> DataFrame:
        state = [column for column in rows.columns if column not in ("cluster", *HELD)]
        return rows.select(
            "cluster",
            F.lit(kind).alias("kind"),
            names[kind].alias("name"),
            F.to_json(F.struct(*state), {"ignoreNullFields": "false"}).alias("state"),
            "from_offset",
            "from_ms",
            "is_from_snapshot",
        )

    return transform


def _described_entries(rows: DataFrame) -> DataFrame:
    state = F.col("value").alias("state")
    return rows.select(
        "cluster", "kind", "name", state, "from_offset", "from_ms", "is_from_snapshot"
    )


def partition_name() -> Column:
    """Return a partition's name as Kafka writes it."""
    return F.concat_ws("-", "topic", F.col("partition").cast("string"))


def config_name() -> Column:
    """Return a config's name: whose it is, and its own."""
    is_default = (F.col("resource_type") != TOPIC) & (F.col("resource_name") == "")
    resource = F.when(is_default, F.lit("default")).otherwise(F.col("resource_name"))
    return F.concat_ws(" ", F.regexp_replace("resource_type", "_", "-"), resource, "name")
