"""Forecast what a start does from the tables of a build: of last night's snapshot, say."""

from itertools import groupby

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.recovery.calibration import calibrate
from kafka_segments.recovery.decide.forecasts import DirFacts, LogForecast, forecast_dirs
from kafka_segments.recovery.decide.tables import decide_logs
from kafka_segments.recovery.decide.times import Costs, Work
from kafka_segments.recovery.run_forecast import Forecast, ForecastOptions
from kafka_segments.tables.catalog import LOG_DIRS, LOGS, SEGMENTS
from kafka_segments.tables.delta import Warehouse
from kafka_segments.wire.names import METADATA_TOPIC, FolderState


def forecast_tables(spark: SparkSession, options: ForecastOptions) -> Forecast:
    """Forecast the start of the brokers in a warehouse; a row a log comes to the driver.

    Raises:
        UsageError: the warehouse lacks the tables of a build; or as ``calibrate``.
    """
    tables = Warehouse(spark, options.warehouse or "")
    log_dirs = tables.read(LOG_DIRS)
    if options.is_killed:
        log_dirs = log_dirs.withColumn("was_clean_shutdown", F.lit(False))
    segments = tables.read(SEGMENTS).where(F.col("vanished_at").isNull())
    if options.cluster is not None:
        segments = segments.where(F.col("cluster") == options.cluster)
    if options.broker_id is not None:
        segments = segments.where(F.col("broker_id") == options.broker_id)
    decided = segments.transform(decide_logs(tables.read(LOGS), log_dirs))
    rows = decided.orderBy("cluster", "broker_id", "log_dir", "topic", "partition").collect()
    dirs = [
        _facts(*key, list(of_dir))
        for key, of_dir in groupby(rows, lambda row: (row.cluster, row.broker_id, row.log_dir))
    ]
    costs = Costs(cores=options.cores)
    if options.calibrates_in is not None:
        costs = calibrate(options.calibrates_in, costs)
    return Forecast(dirs, forecast_dirs(dirs, costs, threads=options.threads), costs)


def _facts(cluster: str, broker_id: int, log_dir: str, rows: list[Row]) -> DirFacts:
    problem = rows[0]["problem"]
    return DirFacts(
        cluster,
        broker_id,
        log_dir,
        rows[0]["is_clean"],
        [_log(row) for row in rows],
        () if problem is None else (problem,),
    )


def _log(row: Row) -> LogForecast:
    return LogForecast(
        row["log_dir"],
        f"{row['topic']}-{row['partition']}",
        row["topic"],
        row["partition"],
        row["folder_state"] or FolderState.LIVE.value,
        row["topic"] == METADATA_TOPIC,
        row["recovery_point"],
        row["first_recovered_offset"],
        _work(row, ""),
        _work(row, "kit_"),
    )


def _work(row: Row, prefix: str) -> Work:
    return Work(
        row["segments"],
        row[f"{prefix}recovered_segments"],
        row[f"{prefix}recovered_bytes"],
        row[f"{prefix}recovered_batches"],
    )
