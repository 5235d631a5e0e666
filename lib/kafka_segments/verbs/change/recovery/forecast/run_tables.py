"""Forecast what a start does from the tables of a build, say one of last night's snapshot."""

from pyspark.sql import functions as F

from kafka_segments.engine.derived.first_look_only import refuse_first_looks
from kafka_segments.engine.tables.catalog import LOG_DIRS, LOGS, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.change.recovery.forecast.decide.forecasts import forecast_dirs
from kafka_segments.verbs.change.recovery.forecast.decide.table_logs import dirs_of
from kafka_segments.verbs.change.recovery.forecast.decide.tables import decide_logs
from kafka_segments.verbs.change.recovery.forecast.run import Forecast, ForecastOptions, costs_of


def run_forecast_tables(warehouse: Warehouse, options: ForecastOptions) -> Forecast:
    """Forecast the start of the brokers in a warehouse; the driver gets a row for each log.

    Raises:
        UsageError: the warehouse lacks the tables of a build, or has segments that are known by a
            first look alone; or the folder to calibrate in cannot be written to.
    """
    log_dirs = warehouse.read(LOG_DIRS)
    if options.is_killed:
        log_dirs = log_dirs.withColumn("was_clean_shutdown", F.lit(False))
    segments = warehouse.read(SEGMENTS).where(F.col("vanished_at").isNull())
    for column, value in (("cluster", options.cluster), ("broker_id", options.broker_id)):
        if value is not None:
            segments = segments.where(F.col(column) == value)
    refuse_first_looks(segments, "how many batches it has")
    decided = segments.transform(decide_logs(warehouse.read(LOGS), log_dirs))
    ordered = decided.orderBy("cluster", "broker_id", "log_dir", "topic", "partition")
    dirs = dirs_of(ordered.collect())
    costs = costs_of(options, [])
    return Forecast(dirs, forecast_dirs(dirs, costs, threads=options.threads), costs)
