"""Measure logs, log directories, runs and decisions: numbers that checks bound."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import minus

_END = 2**63 - 1


def measure_logs(segments: DataFrame) -> Transform:
    """Measure rows of ``logs``; ``segments``: those that have not vanished."""
    ends = segments.groupBy(*LOG_KEYS).agg(F.max("next_offset").alias("_end"))
    epochs = F.col("leader_epochs")
    is_sorted = (epochs == F.array_sort(epochs)) & (
        F.transform(epochs, lambda entry: entry["start_offset"])
        == F.array_sort(F.transform(epochs, lambda entry: entry["start_offset"]))
    )

    def transform(logs: DataFrame) -> DataFrame:
        return logs.join(ends, list(LOG_KEYS), how="left").select(
            *LOG_KEYS,
            _has_problem(),
            (~is_sorted).cast("int").alias("epochs_out_of_order"),
            minus("high_watermark", "_end").alias("missing_to_high_watermark"),
            minus("log_start_offset", "_end").alias("missing_to_log_start"),
        )

    return transform


def measure_log_dirs(log_dirs: DataFrame) -> DataFrame:
    """Measure rows of ``log_dirs``."""
    return log_dirs.select("cluster", "broker_id", "log_dir", _has_problem())


def measure_history(keys: Sequence[str]) -> Transform:
    """Measure rows of a metadata table: how many offsets each shares with an earlier row.

    ``keys`` end with from_offset; a row that holds still has no end.
    """
    of_key = Window.partitionBy(*keys[:-1]).orderBy("from_offset")
    earlier = of_key.rangeBetween(Window.unboundedPreceding, -1)
    before = F.max(F.coalesce("until_offset", F.lit(_END))).over(earlier)

    def transform(rows: DataFrame) -> DataFrame:
        return rows.select(*keys, minus(before, "from_offset").alias("overlap_offsets"))

    return transform


def measure_internal_records(records: DataFrame) -> DataFrame:
    """Measure rows of ``internal_records``."""
    keys = (*LOG_KEYS, "file", "row")
    return records.select(*keys, _has_problem())


def _has_problem() -> Column:
    return F.col("problem").isNotNull().cast("int").alias("has_problem")


def measure_runs(segments: DataFrame, *, last_run: str | None) -> Transform:
    """Measure rows of ``runs``; ``segments``: those that have not vanished.

    Rows are counted for the last run over its sources, where none after it had others that
    overlap: what the table holds since is not that run's. ``last_run`` is the one that was written
    last, as the table's log tells: the moment of a run may be that of an older one that was
    repeated. Of others of one moment none is known to be the last.
    """
    is_last = F.coalesce(F.col("run_id") == F.lit(last_run), F.lit(False))
    same_sources = Window.partitionBy("sources").orderBy(is_last, "started_at", "run_id")
    one_before = same_sources.rowsBetween(-1, -1)
    found, damaged = F.col("segments_found"), F.col("segments_damaged")
    lost = F.col("_found_before") - found
    damaged_percent = F.try_divide(damaged * 100, F.col("segments_scanned"))
    damage_before = F.max(damaged_percent).over(one_before)

    def transform(runs: DataFrame) -> DataFrame:
        builds = runs.where(F.col("command") == "build")
        measured = builds.withColumn("_found_before", F.max("segments_found").over(one_before))
        rows = _rows(builds.withColumn("_is_last", is_last), segments)
        return measured.join(rows, "run_id", how="left").select(
            "run_id",
            F.array_join("sources", ", ").alias("sources_text"),
            (F.col("segments_scanned") + F.col("segments_unchanged") - found).alias(
                "count_difference"
            ),
            (F.unix_millis("started_at") - F.unix_millis("finished_at")).alias("negative_ms"),
            (found - F.col("_rows")).alias("rows_missing"),
            F.try_divide(lost * 100, F.col("_found_before"))
            .cast("long")
            .alias("segments_lost_percent"),
            (damaged_percent - damage_before).cast("long").alias("damage_grown_percent"),
        )

    return transform


def _rows(builds: DataFrame, segments: DataFrame) -> DataFrame:
    """Count the rows under the sources of the runs that were the last over them."""
    once = builds.dropDuplicates(["run_id"])
    sources = once.select("run_id", "started_at", "_is_last", F.explode("sources").alias("_source"))
    later = sources.select(
        F.col("run_id").alias("_later"),
        F.col("started_at").alias("_later_at"),
        F.col("_is_last").alias("_later_is_last"),
        F.col("_source").alias("_other"),
    )
    comes_after = (F.col("_later") != F.col("run_id")) & (
        F.col("_later_is_last") | (~F.col("_is_last") & (F.col("_later_at") >= F.col("started_at")))
    )
    overlaps = _lies_in(F.col("_source"), F.col("_other")) | _lies_in(
        F.col("_other"), F.col("_source")
    )
    superseded = sources.join(later, comes_after & overlaps, how="left_semi").select("run_id")
    last = sources.join(superseded, "run_id", how="left_anti").select("run_id", "_source")
    is_below = _lies_in(F.col("path"), F.col("_source"))
    # Few sources meet all segments: those stay where they are.
    found = segments.select("path").join(F.broadcast(last), is_below, how="inner")
    none = last.select("run_id", F.lit(0).alias("_found"))
    counted = found.select("run_id", F.lit(1).alias("_found")).unionByName(none)
    return counted.groupBy("run_id").agg(F.sum("_found").alias("_rows"))


def _lies_in(path: Column, folder: Column) -> Column:
    return (path == folder) | path.startswith(F.concat(F.rtrim(folder, F.lit("/")), F.lit("/")))


def measure_retention(decisions: DataFrame) -> DataFrame:
    """Measure the rows of a run of ``retention_decisions``."""
    is_conflict = (F.col("decision") == "delete") != F.col("rule").isNotNull()
    return decisions.withColumn("rule_conflict", is_conflict.cast("int"))


def measure_rolls(decisions: DataFrame) -> DataFrame:
    """Measure the rows of a run of ``roll_decisions``."""
    has_rule, decision = F.col("rule").isNotNull(), F.col("decision")
    is_conflict = F.when(decision == "roll", ~has_rule).otherwise(
        has_rule & decision.isin("keep", "unknown")
    )
    return decisions.withColumn("rule_conflict", is_conflict.cast("int"))
