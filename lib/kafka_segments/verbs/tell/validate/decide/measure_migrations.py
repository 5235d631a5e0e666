"""Measure a migration's plans, proofs and events: numbers that checks bound."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform
from kafka_segments.engine.tables.outcomes import Outcome
from kafka_segments.engine.tables.windows import whole_log
from kafka_segments.verbs.change.migrate.decide.actions import SegmentAction, Step

_LOG_OF_PLAN = ("plan_id", *LOG_KEYS)


def measure_plans(plans: DataFrame) -> DataFrame:
    """Measure rows of ``migration_plans``.

    Gives: plan_id, the key, and one column a check.
    """
    behind = (
        Window.partitionBy(*_LOG_OF_PLAN)
        .orderBy("base_offset")
        .rangeBetween(1, Window.unboundedFollowing)
    )
    is_refused = F.max(F.col("action") == SegmentAction.REFUSE).over(whole_log(_LOG_OF_PLAN))
    is_migrated = F.col("is_migrated")
    is_mixed = F.min(is_migrated).over(whole_log(_LOG_OF_PLAN)) != F.max(is_migrated).over(
        whole_log(_LOG_OF_PLAN)
    )
    is_kept = ~F.col("action").isin(SegmentAction.CONVERT, SegmentAction.CUT)
    resized = F.abs(F.col("expected_bytes") - F.col("size_bytes"))
    is_next = F.col("next_base_offset").eqNullSafe(F.min("base_offset").over(behind))
    return plans.select(
        "plan_id",
        *SEGMENT_KEYS,
        ((is_refused & is_migrated) | is_mixed).cast("int").alias("log_torn"),
        F.when(is_kept, resized).alias("resized_bytes"),
        (~is_next).cast("int").alias("next_base_conflict"),
    )


def measure_proofs(plans: DataFrame) -> Transform:
    """Measure rows of ``migration_proofs``; ``plans``: rows of ``migration_plans``."""
    is_same = F.col("record_count").eqNullSafe(F.col("migrated_record_count")) & F.col(
        "digest"
    ).eqNullSafe(F.col("migrated_digest"))
    has_problem = F.col("problem").isNotNull()
    keys = ["plan_id", *SEGMENT_KEYS]
    planned = plans.select(*keys).distinct()

    def transform(proofs: DataFrame) -> DataFrame:
        return proofs.join(planned.withColumn("_planned", F.lit(True)), keys, how="left").select(
            *keys,
            (~has_problem & ~is_same).cast("int").alias("records_differ"),
            has_problem.cast("int").alias("has_problem"),
            F.col("_planned").isNull().cast("int").alias("is_unplanned"),
        )

    return transform


def measure_events(events: DataFrame) -> DataFrame:
    """Measure rows of ``migration_events``."""
    in_order = Window.partitionBy(*_LOG_OF_PLAN).orderBy("sequence")
    earlier = in_order.rangeBetween(Window.unboundedPreceding, -1)
    is_done = F.col("status") == Outcome.DONE
    was_verified = F.max((F.col("step") == Step.VERIFY) & is_done).over(earlier)
    is_applied = (F.col("step") == Step.APPLY) & is_done
    is_last = F.col("sequence") == F.max("sequence").over(whole_log(_LOG_OF_PLAN))
    return events.select(
        "run_id",
        *LOG_KEYS,
        (is_applied & ~F.coalesce(was_verified, F.lit(False))).cast("int").alias("is_unverified"),
        (is_last & F.col("status").isin(Outcome.REFUSED, Outcome.FAILED))
        .cast("int")
        .alias("is_refused"),
    )
