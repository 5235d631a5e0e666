"""What a start does with the logs of a warehouse: from rows to what is forecast of a disk."""

from collections.abc import Iterable
from itertools import groupby

from pyspark.sql import Row

from kafka_segments.kafka.broker_rules.start.cuts import (
    NOTHING,
    DamagedSegment,
    Finding,
    Lost,
    finding_of,
)
from kafka_segments.kafka.index.segment.recovered_segment import Damage, DamageKind
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.change.recovery.forecast.decide.forecasts import DirFacts, LogForecast
from kafka_segments.verbs.change.recovery.forecast.decide.kits import work_left
from kafka_segments.verbs.change.recovery.forecast.decide.tables import UNREAD
from kafka_segments.verbs.change.recovery.forecast.decide.times import LogWork


def dirs_of(rows: Iterable[Row]) -> list[DirFacts]:
    """Return the log directories of rows of ``decide_logs``, in their order.

    What a build could not read is a problem of its log directory, and no finding. Headers behind a
    cut are in no table: how many records they tell of is not known.
    """
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
    """Return what a start makes of the damaged segments of a log."""
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
                found["next_offset"],
            ),
            going if found["base_offset"] == row["first_cut"] else NOTHING,
        )
        for found in sorted(row["damaged"], key=lambda found: found["base_offset"])
        if found["kind"] not in UNREAD
    )


def _log(row: Row) -> LogForecast:
    work = LogWork(
        row["segments"],
        row["recovered_segments"],
        row["recovered_bytes"],
        row["recovered_batches"],
    )
    keeps = row["is_left_alone"] or not work.recovered_segments
    with_kit = work_left(row["segments"], ends_empty=row["ends_empty"])
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
