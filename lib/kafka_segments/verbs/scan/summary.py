"""What a build did, as numbers and as a row of table ``runs``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_segments.files.folders import kinds
from kafka_segments.files.folders.unread_notes import NOTES_READ, UnreadNotes
from kafka_segments.release import __version__

if TYPE_CHECKING:  # a dry run needs no Spark
    from pyspark.sql import DataFrame

    from kafka_segments.verbs.scan.missing_segments import MissingSegment
    from kafka_segments.verbs.scan.planning import BuildWork


@dataclass(frozen=True)
class BuildSummary:
    """What a build did.

    ``segments_damaged`` counts the segments with damage, ``segments_open`` those of them that end
    as a running broker leaves them. ``files_left_over`` are those of ``files_unrecognized`` that a
    broker resolves at its start, ``files_passed_over`` those that it passes over.
    ``segments_looked_at`` are judged by a first look, ``segments_doubted`` were read as a whole
    because one was not enough. ``segments_forbidden`` may not be read by this user, for which
    ``forbidden_why`` has an example; they are not among the damaged. ``missing`` are segments that
    logs lack, and logs whose folders are gone. ``unread``: log directories and logs
    of which a checkpoint or an id was not read. ``taken_back`` says which rows of the
    tables somebody else took back while it ran. ``findings`` counts what someone must look at: the
    other damaged segments, the forbidden ones, the other unrecognized files, the missing segments,
    what was not read or taken back, and ``empty_sources``, below which there is no segment.
    """

    run_id: str
    segments_found: int
    segments_scanned: int
    segments_unchanged: int
    segments_vanished: int
    segments_damaged: int
    segments_open: int
    files_unrecognized: int
    files_left_over: int
    files_passed_over: int
    bytes_scanned: int
    findings: int
    seconds: float
    seconds_by_step: dict[str, float]
    segments_looked_at: int = 0
    segments_doubted: int = 0
    segments_forbidden: int = 0
    forbidden_why: str | None = None
    empty_sources: tuple[str, ...] = ()
    missing: "tuple[MissingSegment, ...]" = ()
    taken_back: tuple[str, ...] = ()
    unread: UnreadNotes = NOTES_READ

    def with_taken_back(self, found: Sequence[str]) -> "BuildSummary":
        """Return the same with what somebody took back of the tables, in words."""
        return replace(self, taken_back=tuple(found), findings=self.findings + len(found))


class Totals(NamedTuple):
    """Counts over what was scanned, and the parts that have its index entries."""

    damaged: int = 0
    findings: int = 0
    bytes: int = 0
    looked_at: int = 0
    doubted: int = 0
    forbidden: int = 0
    forbidden_why: str | None = None
    entry_parts: tuple[str, ...] = ()
    has_transactions: bool = False


def totals_of(scanned: "DataFrame | None") -> Totals:
    """Return the totals of scanned segments; None: nothing was scanned."""
    from kafka_segments.verbs.scan.decide.totals import count_scanned  # noqa: PLC0415

    row = None if scanned is None else scanned.transform(count_scanned).first()
    if row is None:
        return Totals()
    return Totals(**{**row.asDict(), "entry_parts": tuple(row["entry_parts"])})


def summarize(
    work: "BuildWork",
    totals: Totals,
    *,
    run_id: str,
    seconds: float,
    steps: dict[str, float],
    missing: "tuple[MissingSegment, ...]" = (),
    unread: UnreadNotes = NOTES_READ,
) -> BuildSummary:
    """Return what a build did; ``steps`` has the seconds of each step."""
    found = work.listed_count(kinds.SEGMENT)
    not_taken = work.listed_count(*kinds.NOT_TAKEN)
    left_over, passed_over = map(work.listed_count, kinds.HARMLESS)
    return BuildSummary(
        run_id=run_id,
        segments_found=found,
        segments_scanned=work.to_scan,
        segments_unchanged=found - work.to_scan,
        segments_vanished=work.vanished_count,
        segments_damaged=totals.damaged,
        segments_open=totals.damaged - (totals.findings - totals.forbidden),
        files_unrecognized=not_taken,
        files_left_over=left_over,
        files_passed_over=passed_over,
        bytes_scanned=totals.bytes,
        findings=(
            totals.findings
            + not_taken
            - left_over
            - passed_over
            + len(work.empty_sources)
            + len(missing)
            + unread.places
        ),
        seconds=seconds,
        seconds_by_step=steps,
        segments_looked_at=totals.looked_at,
        segments_doubted=totals.doubted,
        segments_forbidden=totals.forbidden,
        forbidden_why=totals.forbidden_why,
        empty_sources=work.empty_sources,
        missing=missing,
        unread=unread,
    )


def run_values(
    summary: BuildSummary,
    sources: Sequence[str],
    options: Mapping[str, Any],
    table_versions: Mapping[str, int],
) -> dict[str, Any]:
    """Return the row of table ``runs``, without the times; ``options``: those beside sources.

    ``table_versions``: those of the other tables, by name.
    """
    return {
        "run_id": summary.run_id,
        "command": "build",
        "sources": list(sources),
        "options": json.dumps(options, sort_keys=True),
        "version": __version__,
        "segments_found": summary.segments_found,
        "segments_scanned": summary.segments_scanned,
        "segments_unchanged": summary.segments_unchanged,
        "segments_vanished": summary.segments_vanished,
        "segments_damaged": summary.segments_damaged,
        "files_unrecognized": summary.files_unrecognized,
        "bytes_scanned": summary.bytes_scanned,
        "table_versions": json.dumps(table_versions, sort_keys=True),
    }
