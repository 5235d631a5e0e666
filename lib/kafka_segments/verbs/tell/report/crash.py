"""What a crash of each broker would cost now: how long its next start would recover logs."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.engine.tables.catalog import LOG_DIRS, LOGS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.change.recovery.forecast.decide.tables import decide_logs, sum_by_dir
from kafka_segments.verbs.change.recovery.forecast.decide.times import (
    Costs,
    DirWork,
    LogWork,
    seconds_of_start,
)

THREADS = (1, 2, 8)
"""The numbers of recovery threads that are shown; 2 is a broker's default."""
MOST_DIRS = 10_000


@dataclass(frozen=True)
class Crash:
    """What a broker's start after a crash recovers, and how long that takes.

    ``seconds`` has a value for each of ``THREADS``; ``with_kit`` is the time after a kit, with 2
    threads. ``error`` is by which share they may be wrong: costs are assumed.
    """

    cluster: str
    broker_id: int
    logs: int
    segments: int
    recovered_segments: int
    recovered_bytes: int
    seconds: tuple[float, ...]
    with_kit: float
    error: float


def crash_dirs(tables: Warehouse, segments: DataFrame) -> DataFrame:
    """Return what ``sum_by_dir`` says of log directories; ``segments``: those that are there."""
    log_dirs = tables.read(LOG_DIRS).withColumn("was_clean_shutdown", F.lit(False))
    logs = segments.transform(decide_logs(tables.read(LOGS), log_dirs))
    return logs.transform(sum_by_dir).orderBy("cluster", "broker_id", "log_dir").limit(MOST_DIRS)


def crashes_of(dirs: Sequence[Row]) -> list[Crash]:
    """Return what a crash costs each broker.

    All logs of a directory but the largest are taken to be of the same size.
    """
    brokers: dict[tuple[str, int], list[Row]] = {}
    for row in dirs:
        brokers.setdefault((row["cluster"], row["broker_id"]), []).append(row)
    return [_crash(*key, of_broker) for key, of_broker in brokers.items()]


def _crash(cluster: str, broker_id: int, dirs: Sequence[Row]) -> Crash:
    costs = Costs()
    plain = [DirWork(row["log_dir"], _logs(row)) for row in dirs]
    kit = [DirWork(row["log_dir"], _alike(_work(row["kit_work"]), row["logs"])) for row in dirs]
    whole = [_work(row["work"]) for row in dirs]
    return Crash(
        cluster,
        broker_id,
        logs=sum(row["logs"] for row in dirs),
        segments=sum(work.segments for work in whole),
        recovered_segments=sum(work.recovered_segments for work in whole),
        recovered_bytes=sum(work.recovered_bytes for work in whole),
        seconds=tuple(
            max(seconds_of_start(plain, costs, threads=threads).values()) for threads in THREADS
        ),
        with_kit=max(seconds_of_start(kit, costs, threads=2).values()),
        error=costs.error,
    )


def _work(row: Row) -> LogWork:
    return LogWork(*(row[name] for name in ("segments", *_RECOVERED)))


_RECOVERED = ("recovered_segments", "recovered_bytes", "recovered_batches")


def _logs(row: Row) -> list[LogWork]:
    """Return the largest log and the others."""
    largest, whole = _work(row["largest"]), _work(row["work"])
    others = LogWork(*(int(total - part) for total, part in zip(whole, largest, strict=True)))
    return [largest, *_alike(others, row["logs"] - 1)]


def _alike(work: LogWork, logs: int) -> list[LogWork]:
    """Share work out to so many logs, as evenly as whole numbers allow."""
    return [
        LogWork(*(int(total) // logs + (number < total % logs) for total in work))
        for number in range(logs)
    ]
