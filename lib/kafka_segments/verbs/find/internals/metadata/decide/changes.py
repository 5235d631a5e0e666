"""Find what changed in a cluster over time, by the rows of the metadata tables."""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.kafka.text.broker_configs import HIDDEN
from kafka_segments.verbs.find.internals.decide.rows import HELD, config_name, partition_name

REPLICAS = "replicas"
_NO_LEADER = -1


def decide_changes(*, since_ms: int | None) -> Transform:
    """Return the changes of configs, leaders and replicas.

    The replicas that a partition has when it is made or removed are no change.

    Needs: rows of ``steps_of``.
    Gives: cluster, offset, ms, kind (config, leader, replicas), name, before, after (null: none),
        detail.
    """
    key = ("cluster", "kind", "name", "id")
    in_order = Window.partitionBy(*key).orderBy("from_offset")
    follows = F.lag("until_offset").over(in_order) == F.col("from_offset")
    ends = F.col("until_offset").isNotNull() & ~F.coalesce(
        F.lead("from_offset").over(in_order) == F.col("until_offset"), F.lit(False)
    )

    def transform(rows: DataFrame) -> DataFrame:
        marked = rows.withColumns(
            {
                "before": F.when(follows, F.lag("value").over(in_order)),
                "_detail_before": F.when(follows, F.lag("detail").over(in_order)),
                "_ends": ends,
            }
        )
        is_shown = F.col("value") != HIDDEN  # a secret has a row for each of its values
        is_same = F.col("before").eqNullSafe(F.col("value")) & is_shown
        is_same = is_same & F.col("_detail_before").eqNullSafe(F.col("detail"))
        began = marked.where(~F.col("is_from_snapshot") & ~is_same)
        value, nothing = F.col("value"), F.lit(None).cast("string")
        came = _changed_at("from", began, F.col("before"), value, F.col("detail"))
        went = _changed_at("until", marked.where("_ends"), value, nothing, nothing)
        is_move = F.col("before").isNotNull() & F.col("after").isNotNull()
        both = came.unionByName(went).where((F.col("kind") != REPLICAS) | is_move)
        return both if since_ms is None else both.where(F.col("ms") >= since_ms)

    return transform


def later_begins(rows: DataFrame) -> DataFrame:
    """Return where histories begin that do not tell a cluster's changes from its first record on.

    Such a history begins with a snapshot behind the log's first offset.

    Needs: rows of ``steps_of``.
    Gives: cluster, first_offset, first_ms.
    """
    return (
        rows.where("is_from_snapshot AND from_offset > 0")
        .groupBy("cluster")
        .agg(
            F.min("from_offset").alias("first_offset"),
            F.min_by("from_ms", "from_offset").alias("first_ms"),
        )
        .orderBy("cluster")
    )


def _changed_at(
    end: str, rows: DataFrame, before: Column, after: Column, detail: Column
) -> DataFrame:
    """Return the changes at which rows begin (``from``) or end (``until``)."""
    return rows.select(
        "cluster",
        F.col(f"{end}_offset").alias("offset"),
        F.col(f"{end}_ms").alias("ms"),
        "kind",
        "name",
        before.alias("before"),
        after.alias("after"),
        detail.alias("detail"),
    )


def steps_of(configs: DataFrame, partitions: DataFrame) -> DataFrame:
    """Put rows of ``metadata_configs`` and ``metadata_partitions`` into one form.

    Gives: cluster, kind, name, id (tells topics of one name apart), value, detail (null: there
        is none), from_offset, from_ms, until_offset, until_ms, is_from_snapshot.
    """
    parts = (_config_steps(configs), _leader_steps(partitions), _replica_steps(partitions))
    return reduce(DataFrame.unionByName, parts)


def _config_steps(configs: DataFrame) -> DataFrame:
    return configs.select(
        "cluster",
        F.lit("config").alias("kind"),
        config_name().alias("name"),
        F.lit("").alias("id"),
        "value",
        F.lit(None).cast("string").alias("detail"),
        *HELD,
    )


def _leader_steps(partitions: DataFrame) -> DataFrame:
    leader = F.col("leader")
    return partitions.select(
        "cluster",
        F.lit("leader").alias("kind"),
        partition_name().alias("name"),
        F.col("topic_id").alias("id"),
        F.when(leader == _NO_LEADER, "none").otherwise(leader.cast("string")).alias("value"),
        F.concat(F.lit("leader epoch "), F.col("leader_epoch").cast("string")).alias("detail"),
        *HELD,
    )


def _replica_steps(partitions: DataFrame) -> DataFrame:
    """Return partitions' replicas, and as detail those that a reassignment adds and removes."""
    moves = (
        F.when(F.size(f"{verb}_replicas") > 0, F.concat(F.lit(f"{verb} "), nodes))
        for verb in ("adding", "removing")
        for nodes in [_ids(f"{verb}_replicas")]
    )
    return partitions.select(
        "cluster",
        F.lit(REPLICAS).alias("kind"),
        partition_name().alias("name"),
        F.col("topic_id").alias("id"),
        _ids("replicas").alias("value"),
        F.nullif(F.concat_ws("; ", *moves), F.lit("")).alias("detail"),
        *HELD,
    )


def _ids(nodes: str) -> Column:
    return F.array_join(F.col(nodes).cast("array<string>"), ",")
