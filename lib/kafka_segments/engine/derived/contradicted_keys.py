"""Records of keys that copies contradict each other about: see ``contradictions``."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import LOG_KEYS, Transform

_AT = (*LOG_KEYS, "offset", "leader_epoch")
_KEY = ("kind", "key_json")


def with_contradicted(keys: DataFrame | None) -> Transform:
    """Add ``contradicted``: why another copy has another record there; null: none has.

    Keys that only other copies have there become rows without a value.

    Needs: rows of ``internal_records``; ``keys``: rows of ``contradicted_keys``, None: none.
    """
    if keys is None:
        return lambda rows: rows.withColumn("contradicted", F.lit(None).cast("string"))
    why = keys.groupBy(*_AT).agg(F.first("contradicted").alias("contradicted"))
    of_others = keys.where(F.col("key_json").isNotNull()).withColumns(
        {"producer_id": F.lit(-1).cast("long"), "is_tombstone": F.lit(False)}
    )

    def transform(rows: DataFrame) -> DataFrame:
        own = rows.select(*_AT, *_KEY)
        logs = rows.select(*LOG_KEYS).distinct()
        added = of_others.join(logs, list(LOG_KEYS), "left_semi")
        added = added.join(own, [*_AT, *_KEY], "left_anti").drop("is_only_key")
        return rows.join(why, list(_AT), "left").unionByName(added, allowMissingColumns=True)

    return transform
