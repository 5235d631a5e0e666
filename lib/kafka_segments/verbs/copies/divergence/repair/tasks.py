"""Make whole logs of damaged copies, in the executors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.errors import FileChangedError, SetAsideError
from kafka_segments.files.storage.files import first_line
from kafka_segments.verbs.copies.divergence.decide.compaction import Compaction
from kafka_segments.verbs.copies.divergence.decide.copies import UNSOUND, Copy, CopyPiece
from kafka_segments.verbs.copies.divergence.decide.logs import compare_log
from kafka_segments.verbs.copies.divergence.log_reading.log_files import CopyFiles, WholeSegment
from kafka_segments.verbs.copies.divergence.repair.decide.repairs import Repair, plan_repair
from kafka_segments.verbs.copies.divergence.repair.repaired_log import NewLog, Proof, write_log
from kafka_segments.verbs.copies.divergence.tasks_by_log import map_logs
from kafka_segments.verbs.copies.divergence.tasks_logs import copy_of, keyed_logs

REPAIRED = StructType(
    row_fields(
        "topic string, partition int, row int, state string, from_offset long,"
        " until_offset long, copy string, batches long, size_bytes long, sha256 string,"
        " detail string"
    )
)


class State(StrEnum):
    """What became of a range, or of a log."""

    PLANNED = "planned"
    BUILT = "built"
    MISSING = "missing"
    """No copy holds these offsets as they should be."""
    REFUSED = "refused"
    """Nothing was made of the log."""


@dataclass(frozen=True)
class RepairSettings:
    """How logs are repaired; the settings cross to the executors.

    Attributes:
        out: the folder for the new logs; None: they are only planned.
        logs: only these, as topic-partition; empty: those that are damaged in some copy.
        history: the copy whose leader epochs count; None: the latest of each log.
        now_ms: the clock, in ms since 1970.
    """

    out: str | None
    logs: tuple[str, ...]
    history: str | None
    now_ms: int


def repair_logs(parts: DataFrame, settings: RepairSettings) -> Transform:
    """Make a whole log of the copies of each log that is damaged or named.

    Needs: rows of ``decide.frames.described`` with topic_id and segments (array of path,
        base_offset, next_base, end_position); ``parts``: rows of ``decide.frames.unequal_parts``.
    Gives: ``REPAIRED``, a row for each range; none of a log that needs no repair.
    """

    def repair(
        copies: Sequence[dict[str, Any]], ranges: Sequence[dict[str, CopyPiece]]
    ) -> list[dict[str, Any]]:
        name = f"{copies[0]['topic']}-{copies[0]['partition']}"
        rows = _repaired(name, copies, ranges, settings)
        return [{"row": number, **row} for number, row in enumerate(rows)]

    return map_logs(parts, repair, REPAIRED)


def _repaired(
    name: str,
    rows: Sequence[dict[str, Any]],
    ranges: Sequence[dict[str, CopyPiece]],
    settings: RepairSettings,
) -> list[dict[str, Any]]:
    if settings.logs and name not in settings.logs:
        return []
    copies = sorted(copy_of(row) for row in rows)
    try:
        keys = keyed_logs(rows)
        compared = compare_log(copies, ranges, CopyFiles(), keys)
        if not settings.logs and not any(row.kind in UNSOUND for row in compared):
            lacking = [row for row in compared if row.is_behind_all]
            return _missing((row.from_offset, row.until_offset) for row in lacking)
        if Compaction(copies, keys).noted_end is not None:
            compared = compare_log(copies, ranges, CopyFiles(), keys, check_keys=True)
        segments = {row["copy"]: [WholeSegment(**one) for one in row["segments"]] for row in rows}
        batches = {copy.name: _batches(segments[copy.name]) for copy in copies}
        cleaned = Compaction(copies, keys).end()
        plan = plan_repair(copies, batches, compared, cleaned, settings.history)
        if plan.refused:
            return [_told(State.REFUSED, copies, plan.refused)]
        if settings.out is None:
            return [*_planned(plan), *_missing(plan.missing)]
        rolls = [one.base_offset for one in segments[plan.history]]
        topic_id = next((row["topic_id"] for row in rows if row["topic_id"]), None)
        log = NewLog(Path(settings.out, name), plan.taken, rolls, topic_id, settings.now_ms)
        return [*map(_built, write_log(log)), *_missing(plan.missing)]
    except (SetAsideError, OSError, FileChangedError) as error:
        return [_told(State.REFUSED, copies, first_line(error))]


def _batches(segments: Sequence[WholeSegment]) -> list[CopyPiece]:
    files = CopyFiles()
    ordered = sorted(segments, key=lambda one: one.base_offset)
    return [piece for one in ordered for piece in files.batches("", one.as_piece())]


def _told(state: State, copies: Sequence[Copy], detail: str) -> dict[str, Any]:
    start, end = min(copy.start for copy in copies), max(copy.end for copy in copies)
    return {"state": state, "from_offset": start, "until_offset": end, "detail": detail}


def _planned(plan: Repair) -> list[dict[str, Any]]:
    return [
        {
            "state": State.PLANNED,
            "from_offset": taken.from_offset,
            "until_offset": taken.until_offset,
            "copy": taken.copy,
            "batches": len(taken.batches),
            "size_bytes": sum(
                piece.where[0].end_position - piece.where[0].position for piece in taken.batches
            ),
            "detail": "",
        }
        for taken in plan.taken
    ]


def _missing(ranges: Iterable[tuple[int, int]]) -> list[dict[str, Any]]:
    detail = "no copy holds these offsets as they should be"
    return [
        {"state": State.MISSING, "from_offset": low, "until_offset": high, "detail": detail}
        for low, high in ranges
    ]


def _built(proof: Proof) -> dict[str, Any]:
    return {"state": State.BUILT, **proof._asdict(), "detail": ""}
