"""What an administrator does to a table with Delta's own statements; its rows stay."""

from collections.abc import Callable

from delta import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

Alter = Callable[[SparkSession, str], None]


def _with_properties(**said: str) -> Alter:
    def alter(spark: SparkSession, table: str) -> None:
        named = ", ".join(f"'delta.{name}' = '{value}'" for name, value in said.items())
        spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({named})")

    return alter


def _rewrite(spark: SparkSession, table: str) -> None:
    """Give some rows the values that they have, in a commit."""
    frame = spark.read.format("delta").load(table)
    column = frame.columns[0]
    some = frame.limit(1).collect()
    if some:
        same = {column: F.col(column)}
        DeltaTable.forPath(spark, table).update(F.col(column).eqNullSafe(some[0][0]), same)


def _and_rewrite(alter: Alter) -> Alter:
    def both(spark: SparkSession, table: str) -> None:
        alter(spark, table)
        _rewrite(spark, table)

    return both


def _restore(spark: SparkSession, table: str) -> None:
    history = DeltaTable.forPath(spark, table).history(1).collect()
    _rewrite(spark, table)
    spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF {history[0]['version']}")


def _add_column(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMN (owner STRING FIRST)")


def _add_constraint(spark: SparkSession, table: str) -> None:
    column = spark.read.format("delta").load(table).columns[0]
    holds = f"CHECK (`{column}` IS NOT NULL OR `{column}` IS NULL)"
    spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT of_ours {holds}")


def _partition(spark: SparkSession, table: str) -> None:
    measured = "delta.dataSkippingStatsColumns"  # no partition may be by one of these columns
    spark.sql(f"ALTER TABLE delta.`{table}` UNSET TBLPROPERTIES IF EXISTS ('{measured}')")
    rows = spark.read.format("delta").load(table).localCheckpoint()
    # An empty text, as a cluster's may be, is null as a partition's value: another row.
    by = next((name for name in ("topic", "plan_id", "run_id") if name in rows.columns), "cluster")
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy(by if by in rows.columns else rows.columns[0]).save(table)


def _cluster(spark: SparkSession, table: str) -> None:
    column = spark.read.format("delta").load(table).columns[0]
    spark.sql(f"ALTER TABLE delta.`{table}` CLUSTER BY (`{column}`)")
    _rewrite(spark, table)


def _optimize(spark: SparkSession, table: str) -> None:
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    _rewrite(spark, table)
    spark.sql(f"OPTIMIZE delta.`{table}`")
    spark.conf.set(check, "false")
    try:
        spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    finally:
        spark.conf.unset(check)


_MAPPED = {"columnMapping.mode": "name", "minReaderVersion": "2", "minWriterVersion": "5"}
ALTERATIONS: dict[str, Alter] = {
    "deletion vectors": _and_rewrite(_with_properties(enableDeletionVectors="true")),
    "mapped columns": _and_rewrite(_with_properties(**_MAPPED)),
    "row tracking": _and_rewrite(_with_properties(enableRowTracking="true")),
    "checkpoints of version 2": _and_rewrite(
        _with_properties(checkpointPolicy="v2", checkpointInterval="1")
    ),
    "timestamps in commits": _and_rewrite(_with_properties(enableInCommitTimestamps="true")),
    "widened types": _with_properties(enableTypeWidening="true"),
    "defaults of columns": _with_properties(**{"feature.allowColumnDefaults": "supported"}),
    "change feed": _and_rewrite(_with_properties(enableChangeDataFeed="true")),
    "appends alone": _with_properties(appendOnly="true"),
    "restored": _restore,
    "a column of their own": _and_rewrite(_add_column),
    "a constraint of their own": _and_rewrite(_add_constraint),
    "partitions": _partition,
    "clustered": _cluster,
    "optimized, vacuumed": _optimize,
}
"""By its name, in the words of a person."""
