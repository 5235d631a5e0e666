"""Shape what listing and scanning found into rows of the published tables."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from kafka_segments.index.recovery import DamageKind
from kafka_segments.sources import kinds
from kafka_segments.sources.broker_identity import file_path
from kafka_segments.tables.keys import Transform
from kafka_segments.tables.schemas import schema

_NS_A_MS = 1_000_000
_READ_AGAIN = (DamageKind.CHANGED, DamageKind.VANISHED, DamageKind.UNREADABLE)
"""Damage after which the next run reads the segment again; ``with_verdicts`` has more."""


def _published(rows: DataFrame, name: str) -> DataFrame:
    return rows.select(
        *(
            F.col(field.name)
            if isinstance(field.dataType, (ArrayType, StructType))
            else F.col(field.name).cast(field.dataType)
            for field in schema(name)
        )
    )


def to_segments(*, index_format: str, run_id: str, now: Column) -> Transform:
    """Turn scanned segments, with cluster and broker_id, into rows of ``segments``."""
    has_timestamp = F.coalesce(F.col("max_timestamp_ms") >= 0, F.lit(False))
    last_modified = F.expr(f"mtime_ns div {_NS_A_MS}")
    is_read_again = F.coalesce(F.col("damage.kind").isin(*_READ_AGAIN), F.lit(False))

    def transform(scanned: DataFrame) -> DataFrame:
        return _published(
            scanned.withColumns(
                {
                    "path": file_path(),
                    "last_modified_ms": last_modified,
                    "largest_timestamp_ms": F.when(
                        has_timestamp, F.col("max_timestamp_ms")
                    ).otherwise(last_modified),
                    "largest_timestamp_source": F.when(has_timestamp, "record").otherwise(
                        "last_modified"
                    ),
                    "index_format": F.lit(index_format),
                    "fingerprint": F.when(~is_read_again, F.col("fingerprint")),
                    "scanned_at": now,
                    "run_id": F.lit(run_id),
                    "vanished_at": F.lit(None),
                }
            ),
            "segments.v2",
        )

    return transform


def to_logs(listed: DataFrame, *, run_id: str) -> Transform:
    """Turn log rows of a listing, with cluster and broker_id, into rows of ``logs``."""
    checkpointed = (
        listed.where(F.col("kind") == kinds.LOG_DIR)
        .select("log_dir", F.inline("offsets"))
        .hint("broadcast")
    )

    def transform(logs: DataFrame) -> DataFrame:
        return _published(
            logs.join(checkpointed, ["log_dir", "topic", "partition"], how="left").withColumns(
                {"path": file_path(), "problem": F.col("reason"), "run_id": F.lit(run_id)}
            ),
            "logs.v1",
        )

    return transform


def to_log_dirs(*, run_id: str) -> Transform:
    """Turn log_dir rows of a listing, with cluster and broker_id, into rows of ``log_dirs``."""

    def transform(log_dirs: DataFrame) -> DataFrame:
        return _published(
            log_dirs.select("cluster", "broker_id", "log_dir", "reason", "meta.*").withColumns(
                {
                    "meta_version": F.col("version"),
                    "problem": F.col("reason"),
                    "run_id": F.lit(run_id),
                }
            ),
            "log_dirs.v1",
        )

    return transform


def to_unrecognized(*, run_id: str) -> Transform:
    """Turn unrecognized and unlisted rows of a listing into rows of ``unrecognized_files``."""

    def transform(rows: DataFrame) -> DataFrame:
        return _published(
            rows.withColumns({"path": file_path(), "run_id": F.lit(run_id)}),
            "unrecognized_files.v1",
        ).dropDuplicates(["cluster", "broker_id", "path"])

    return transform
