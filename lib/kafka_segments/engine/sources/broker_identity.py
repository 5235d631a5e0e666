"""Which broker a listed file belongs to, and where it lies, as columns.

Every function takes rows of a listing (``sources.listing_rows.Listed``) or of table ``segments``.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.files.folders import kinds


def file_path() -> Column:
    """Join ``source``, ``relative_path`` and ``name`` into a path or URI."""
    root = F.when(F.col("source") == "/", "").otherwise(F.col("source"))
    folder = F.nullif(F.col("relative_path"), F.lit(""))
    return F.concat_ws("/", root, folder, F.nullif(F.col("name"), F.lit("")))


def has_segment_id() -> Column:
    """Tell by ``name`` whether a segment is an object of tiered storage."""
    return F.col("name").contains("-")


def lies_below(path: Column, sources: Sequence[str]) -> Column:
    """Tell whether a path is one of the sources or lies below one."""
    below = F.lit(False)
    for source in sources:
        below = below | (path == source) | path.startswith(source.rstrip("/") + "/")
    return below


def with_broker(listed: DataFrame, *, cluster: str | None, broker_id: int | None) -> Transform:
    """Add ``cluster`` and ``broker_id``: as given, else as meta.properties of the log_dir says."""
    log_dirs = listed.where(F.col("kind") == kinds.LOG_DIR).select(
        "log_dir", F.col("meta.cluster_id").alias("_cluster"), F.col("meta.node_id").alias("_node")
    )

    def transform(rows: DataFrame) -> DataFrame:
        return (
            rows.join(F.broadcast(log_dirs), "log_dir", how="left")
            .withColumns(
                {
                    "cluster": F.coalesce(F.lit(cluster), F.col("_cluster"), F.lit("")),
                    "broker_id": F.coalesce(F.lit(broker_id), F.col("_node"), F.lit(-1)),
                }
            )
            .drop("_cluster", "_node")
        )

    return transform
