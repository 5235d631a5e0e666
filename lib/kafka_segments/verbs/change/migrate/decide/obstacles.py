"""Find what stands between log directories and a Kafka 4 broker."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.files.folders import kinds
from kafka_segments.verbs.change.migrate.decide import inventory

COLUMNS = (*LOG_KEYS, "code", "count", "bytes", "example", "is_blocking", "obstacle", "action")


class Obstacle(NamedTuple):
    """What an obstacle means, and what to do.

    ``is_blocking``: because of it 4.x does not start, does not serve the data, or cannot be reached
    by an upgrade.
    """

    is_blocking: bool
    words: str
    action: str


_REBUILD = "kafka-segments build --in-place, with the broker stopped"
OBSTACLES = {
    inventory.LEGACY_FORMAT: Obstacle(
        False,
        "messages v0 or v1: a 4.x broker reads and serves them as they lie, and converts them for"
        " no client; only its log cleaner writes v2",
        "none needed; kafka-segments migrate converts them where clients read v2 alone",
    ),
    inventory.INDEX_MISSING: Obstacle(
        False,
        "no .index: a broker recovers the segment at its start, and cuts it at the first damage",
        _REBUILD,
    ),
    inventory.TIME_INDEX_MISSING: Obstacle(
        False,
        "no .timeindex beside the .index: not rebuilt at start, retention and searches by time go"
        " by the mtime of the .log",
        _REBUILD,
    ),
    inventory.OFFSET_OVERFLOW: Obstacle(
        True,
        "offsets that do not fit int32 above the base offset: a broker splits the segment when it"
        " recovers it, or fails to start",
        "let a broker of the old release roll or compact it, or split it before the move",
    ),
    inventory.DAMAGED: Obstacle(
        False,
        "damage: a broker that recovers the segment cuts it there",
        "see column damage; take the segment from another replica",
    ),
    inventory.NOT_LISTED: Obstacle(
        False,
        "the folder cannot be listed: what index files there are is not known",
        "run this where the log directory is mounted",
    ),
    inventory.NOT_COUNTED: Obstacle(
        False, "the segment cannot be read again: its formats are not counted", "see uncounted"
    ),
    "no_topic_id": Obstacle(
        True,
        "no topic id (partition.metadata): a 4.x broker takes the folder for stray, renames it to"
        " -stray and does not serve it",
        "start it once under 2.8 to 3.9 with ZooKeeper and migrate the cluster to KRaft there, or"
        " write partition.metadata with the topic's id",
    ),
    "future_folder": Obstacle(
        False,
        "a replica on its way to another disk (-future)",
        "let the move finish; remove the folder only where the log's other folder is whole",
    ),
    "no_leader_epochs": Obstacle(
        False,
        "no leader-epoch-checkpoint: written by 0.11 and later; a follower truncates by the high"
        " watermark until the next leader epoch",
        "none needed",
    ),
    "unreadable_metadata": Obstacle(
        False, "files beside the segments cannot be read", "see column problem of table logs"
    ),
    "zookeeper_mode": Obstacle(
        False,
        "meta.properties of version 0, as ZooKeeper mode writes it: a 4.x broker starts on it, but"
        " serves only what the KRaft metadata name",
        "migrate the cluster to KRaft with 3.9, the last release that can",
    ),
    "no_meta_properties": Obstacle(
        False,
        "no meta.properties: no broker's whole log directory; a 4.x broker needs it in one of its"
        " own at least",
        "kafka-storage format writes it",
    ),
    "unclean_shutdown": Obstacle(
        False,
        "no .kafka_cleanshutdown: a broker recovers every log from its recovery point on, and"
        " removes what follows a segment that it cuts",
        "stop the broker in order before the move",
    ),
    "marked_folder": Obstacle(
        False,
        "folders marked -delete or -stray: not served, -delete ones are removed at start",
        "rename back, or copy, what is still wanted, then remove them",
    ),
    "lost_log": Obstacle(
        True,
        "a folder without a segment, of a log that had records by its log directory's"
        " replication-offset-checkpoint: a broker begins it anew at offset 0",
        "put its segments back from a backup or another replica",
    ),
    "leftover_file": Obstacle(
        False,
        "left over from compaction, a split or a deletion: resolved at start",
        "start and stop the old broker in order before the move",
    ),
    "refused_name": Obstacle(
        True,
        "a name at which a broker fails to start",
        "see table unrecognized_files; move it away",
    ),
    "gone_setting": Obstacle(
        False, "a setting that 4.x does not know or heed", "take it out of the configuration"
    ),
    "old_protocol": Obstacle(
        True,
        "inter.broker.protocol.version below 3.3, or no version: 4.x is an upgrade from 3.3 and"
        " later alone",
        "upgrade to 3.9 and raise it there",
    ),
    "zookeeper_setting": Obstacle(
        True, "zookeeper.connect: 4.x has KRaft alone", "migrate the cluster to KRaft with 3.9"
    ),
}


def obstacles_of_segments(segments: DataFrame) -> DataFrame:
    """Return the obstacles of the segments of each log, summed up.

    Needs: rows of ``migration_inventory``.
    """
    return (
        segments.select(
            *LOG_KEYS, "base_offset", "size_bytes", F.explode("obstacles").alias("code")
        )
        .groupBy(*LOG_KEYS, "code")
        .agg(
            F.count("*").alias("count"),
            F.sum("size_bytes").alias("bytes"),
            F.min("base_offset").alias("_first"),
        )
        .withColumn("example", F.format_string("%s-%d/%020d.log", "topic", "partition", "_first"))
        .drop("_first")
    )


def obstacles_of_logs(logs: DataFrame) -> DataFrame:
    """Return what is missing beside the segments of each log.

    Needs: rows of table ``logs``.
    """
    is_future = F.col("folder_state") == "future"
    is_read = F.col("problem").isNull()
    return logs.transform(
        _found(
            {
                "no_topic_id": is_read & F.col("topic_id").isNull() & ~is_future,
                "no_leader_epochs": is_read & F.col("leader_epochs").isNull() & ~is_future,
                "future_folder": is_future,
                "unreadable_metadata": ~is_read,
            },
            F.col("path"),
        )
    )


def obstacles_of_log_dirs(log_dirs: DataFrame) -> DataFrame:
    """Return what is wrong with log directories.

    Needs: rows of table ``log_dirs``.
    """
    with_log = log_dirs.withColumns(
        {"topic": F.lit(None).cast("string"), "partition": F.lit(None).cast("int")}
    )
    version = F.col("meta_version")
    return with_log.transform(
        _found(
            {
                "zookeeper_mode": F.coalesce(version == 0, F.lit(False)),
                "no_meta_properties": version.isNull(),
                "unclean_shutdown": ~F.coalesce("was_clean_shutdown", F.lit(False)),
            },
            F.col("log_dir"),
        )
    )


def obstacles_of_files(files: DataFrame) -> DataFrame:
    """Return files that are no segments, summed up.

    Needs: rows of table ``unrecognized_files``.
    """
    reason = F.col("reason")
    code = (
        F.when(reason.contains("would not start"), "refused_name")
        .when(reason.contains("the folder is marked"), "marked_folder")
        .when(reason.startswith("left over"), "leftover_file")
        .when(reason.startswith(kinds.NO_SEGMENT), "lost_log")
    )
    return (
        files.withColumn("code", code)
        .where(F.col("code").isNotNull())
        .groupBy("cluster", "broker_id", "code")
        .agg(
            F.count("*").alias("count"),
            F.sum("size_bytes").alias("bytes"),
            F.min("path").alias("example"),
        )
        .withColumns({name: F.lit(None).cast("string") for name in ("log_dir", "topic")})
        .withColumn("partition", F.lit(None).cast("int"))
    )


def obstacles_of_settings(settings: DataFrame) -> DataFrame:
    """Return settings that 4.x does not know, with what they mean.

    Needs: cluster, broker_id, topic, key, value.
    """
    release = F.regexp_extract_all("value", F.lit("[0-9]+"), F.lit(0)).cast("array<int>")
    is_3_3 = release >= F.array(F.lit(3), F.lit(3))
    code = (
        F.when(F.col("key") == "zookeeper.connect", "zookeeper_setting")
        .when(
            (F.col("key") == "inter.broker.protocol.version") & ~F.coalesce(is_3_3, F.lit(False)),
            "old_protocol",
        )
        .otherwise("gone_setting")
    )
    return settings.select(
        "cluster",
        "broker_id",
        F.lit(None).cast("string").alias("log_dir"),
        "topic",
        F.lit(None).cast("int").alias("partition"),
        code.alias("code"),
        F.lit(1).cast("long").alias("count"),
        F.lit(None).cast("long").alias("bytes"),
        F.concat_ws("=", "key", "value").alias("example"),
    )


def _found(holds: dict[str, Column], example: Column) -> Transform:
    codes = F.array_compact(
        F.array(*(F.when(condition, code) for code, condition in holds.items()))
    )

    def transform(rows: DataFrame) -> DataFrame:
        return rows.select(
            *LOG_KEYS,
            F.explode(codes).alias("code"),
            F.lit(1).cast("long").alias("count"),
            F.lit(None).cast("long").alias("bytes"),
            example.alias("example"),
        )

    return transform


def explained(rows: DataFrame) -> DataFrame:
    """Add what the codes of obstacles mean: those of all kinds together, as it takes much planning.

    Gives: the columns of ``migration_obstacles`` without the run's.
    """
    is_blocking, words, action = (F.lit(None), F.lit(None), F.lit(None))
    for code, obstacle in OBSTACLES.items():
        is_it = F.col("code") == code
        is_blocking = F.when(is_it, obstacle.is_blocking).otherwise(is_blocking)
        words = F.when(is_it, obstacle.words).otherwise(words)
        action = F.when(is_it, obstacle.action).otherwise(action)
    return rows.withColumns(
        {
            "is_blocking": is_blocking.cast("boolean"),
            "obstacle": words.cast("string"),
            "action": action.cast("string"),
        }
    ).select(*COLUMNS)
