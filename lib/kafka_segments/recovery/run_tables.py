"""Forecast what a start does from the tables of a build, say one of last night's snapshot."""

from itertools import groupby

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.index.segment import Damage, DamageKind
from kafka_segments.recovery.decide.cuts import NOTHING, DamagedSegment, Finding, Lost, finding_of
from kafka_segments.recovery.decide.forecasts import DirFacts, LogForecast, forecast_dirs
from kafka_segments.recovery.decide.tables import UNREAD, decide_logs
from kafka_segments.recovery.decide.times import Work
from kafka_segments.recovery.run_forecast import Forecast, ForecastOptions, costs_of
from kafka_segments.tables.catalog import LOG_DIRS, LOGS, SEGMENTS
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.looked_at import refuse_looked_at
from kafka_segments.wire.names import METADATA_TOPIC


def run_forecast_tables(
    spark: SparkSession, options: ForecastOptions, *, warehouse: str
) -> Forecast:
    """Forecast the start of the brokers in a warehouse; the driver gets a row for each log.

    Raises:
        UsageError: the warehouse lacks the tables of a build, or has segments that are known by a
            first look alone; or the folder to calibrate in cannot be written to.
    """
    tables = Warehouse(spark, warehouse)
    log_dirs = tables.read(LOG_DIRS)
    if options.is_killed:
        log_dirs = log_dirs.withColumn("was_clean_shutdown", F.lit(False))
    segments = tables.read(SEGMENTS).where(F.col("vanished_at").isNull())
    for column, value in (("cluster", options.cluster), ("broker_id", options.broker_id)):
        if value is not None:
            segments = segments.where(F.col(column) == value)
    refuse_looked_at(segments, "how many batches it has")
    decided = segments.transform(decide_logs(tables.read(LOGS), log_dirs))
    dirs = dirs_of(decided.orderBy("cluster", "broker_id", "log_dir", "topic", "partition"))
    costs = costs_of(options, [])
    return Forecast(dirs, forecast_dirs(dirs, costs, threads=options.threads), costs)


def dirs_of(decided: DataFrame) -> list[DirFacts]:
    """Return the log directories of rows of ``decide_logs``, in their order."""
    rows = decided.collect()
    return [
        _facts(*key, list(of_dir))
        for key, of_dir in groupby(rows, lambda row: (row.cluster, row.broker_id, row.log_dir))
    ]


def _facts(cluster: str, broker_id: int, log_dir: str, rows: list[Row]) -> DirFacts:
    problem = rows[0]["problem"]
    unread = [
        f"{_folder(row)}: segment {found['base_offset']}: {found['message']}"
        for row in rows
        for found in row["damaged"]
        if found["kind"] in UNREAD
    ]
    return DirFacts(
        cluster,
        broker_id,
        log_dir,
        rows[0]["is_clean"],
        [_log(row) for row in rows],
        (*([] if problem is None else [problem]), *unread),
    )


def _folder(row: Row) -> str:
    folder: str = row["path"].rpartition("/")[2]
    return folder


def _findings(row: Row) -> tuple[Finding, ...]:
    """Return what a start makes of the damaged segments of a log.

    No table has the headers behind a cut: how many records they name is not known.
    """
    going = Lost(row["lost_bytes"], row["lost_segments"], row["lost_records"])
    return tuple(
        finding_of(
            row["topic"],
            row["partition"],
            _folder(row),
            found["base_offset"],
            DamagedSegment(
                Damage(DamageKind(found["kind"]), found["position"], found["message"]),
                found["cut_bytes"],
                None if found["cut_bytes"] else 0,
            ),
            going if found["base_offset"] == row["first_cut"] else NOTHING,
        )
        for found in sorted(row["damaged"], key=lambda found: found["base_offset"])
        if found["kind"] not in UNREAD
    )


def _log(row: Row) -> LogForecast:
    work = Work(
        row["segments"],
        row["recovered_segments"],
        row["recovered_bytes"],
        row["recovered_batches"],
    )
    keeps = row["is_left_alone"] or not work.recovered_segments
    with_kit = Work(row["segments"] + (not row["ends_empty"]), 1)
    return LogForecast(
        row["log_dir"],
        _folder(row),
        row["topic"],
        row["partition"],
        row["folder_state"],
        row["topic"] == METADATA_TOPIC,
        row["recovery_point"],
        row["first_recovered_offset"],
        work,
        work if keeps else with_kit,
        missing_indexes=None,
        full_indexes=None,
        left_over_files=None,
        findings=_findings(row),
        knows_files=False,
    )
