"""What keeps index files from lying beside the segments; it is looked for before any is written."""

import re

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.derived.topic_sizes import unknown_topics
from kafka_segments.engine.sources.broker_identity import file_path, has_segment_id
from kafka_segments.errors import UsageError
from kafka_segments.files.folders import kinds
from kafka_segments.files.storage.folder_lock import refuse_locked
from kafka_segments.kafka.text.names import INDEX_SUFFIXES
from kafka_segments.kafka.text.plain_text import first_of

_MOST_NAMED = 3
_INDEX_FILE = f"^[0-9]{{20}}({'|'.join(map(re.escape, INDEX_SUFFIXES))})$"


def check_sizes_known(listed: DataFrame, configs: TopicConfigs) -> None:
    """Refuse to write beside segments of topics whose index settings nothing tells.

    A file that is longer than a topic's segment.index.bytes keeps its broker from starting.

    Needs: rows of ``list_sources``, with cluster and broker_id.

    Raises:
        UsageError: the topics, and where their settings can come from.
    """
    topics = listed.where(F.col("kind") == kinds.SEGMENT).select("cluster", "topic").distinct()
    unknown = unknown_topics(configs, ((row["cluster"], row["topic"]) for row in topics.collect()))
    if unknown:
        named = first_of(sorted({topic for _, topic in unknown}), _MOST_NAMED)
        raise UsageError(
            f"--in-place: index.interval.bytes and segment.index.bytes of {named} are not"
            " known, and a broker does not start on an index file that is longer than its topic"
            " allows: give --topic-configs (what kafka-configs --describe --entity-type topics"
            " prints), or read the cluster's metadata log first (build --internals without"
            " --in-place), or give both --index-interval-bytes and --segment-index-bytes if they"
            " hold for all topics"
        )


def check_in_place(listed: DataFrame) -> None:
    """Refuse sources in which index files cannot be put beside the segments.

    Needs: rows of ``list_sources``, with cluster and broker_id.

    Raises:
        UsageError: a segment is an object of tiered storage; or a folder, a pipe or a link has
            the name of an index file; or a running broker holds a log directory.
    """
    path = file_path().alias("path")
    is_segment = F.col("kind") == kinds.SEGMENT
    tiered = listed.where(is_segment & has_segment_id()).select(path).first()
    if tiered is not None:
        raise UsageError(
            f"--in-place: {tiered['path']} is an object of tiered storage, where no reader looks"
            " for index files of other names: give --index-dir"
        )
    is_odd = F.col("kind").isin(kinds.UNRECOGNIZED, kinds.NOT_FOLLOWED)
    odd = listed.where(is_odd & F.col("name").rlike(_INDEX_FILE)).select(path, "reason").first()
    if odd is not None:
        raise UsageError(
            f"--in-place: {odd['path']} is in the way of an index file ({odd['reason']}): move it"
            " away, or give --index-dir"
        )
    locked = listed.where((F.col("kind") == kinds.LOG_DIR) & F.col("meta.has_lock_file"))
    refuse_locked([row["log_dir"] for row in locked.select("log_dir").collect()])
