"""What ``recovery kit`` prints."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_segments.console.lines import say
from kafka_segments.console.not_known import say_not_known
from kafka_segments.console.options import ExitStatus
from kafka_segments.console.output import print_records, size_text
from kafka_segments.files.node.log_dirs import logs_gone
from kafka_segments.verbs.change.recovery.kit_manifest import KitState, LogKit

if TYPE_CHECKING:  # to apply a kit nothing is read by compiled code
    from kafka_segments.verbs.change.recovery.kit.listing import KitWork


@dataclass(frozen=True)
class _KitRow:
    """What a kit says of a log, as it is printed."""

    log: str
    state: str
    segments: int
    bytes: int
    files: int
    recovery_point: int
    next_recovery_point: int
    cut_segment: int | None
    cut_bytes: int
    cut_records: int
    message: str


def print_kit(kits: Iterable[LogKit], work: "KitWork", output: str, *, by: str) -> int:
    """Print what a kit says of each log as it is made; return the exit status.

    ``by``: what reads the segments.
    """
    size = size_text(work.read_bytes)
    say(f"{size} in {work.segments} segments are read by {by}")
    states: Counter[str] = Counter()
    cuts = 0
    for row in print_records(_rows(kits), _KitRow, output, _kit_line, state=_kit_state):
        states[row.state] += 1
        cuts += row.cut_segment is not None
    for path, named in work.gone.items():
        say(f"{path}: {logs_gone(named)}")
    for line in work.notes.lines():
        say_not_known(line)
    counts = ", ".join(f"{states[state]} {state}" for state in KitState if states[state])
    say(f"logs: {counts or 'none'}; with a torn tail to cut off: {cuts}")
    is_found = states[KitState.REFUSED] or cuts or work.gone or work.notes.places
    return ExitStatus.FINDINGS if is_found else ExitStatus.DONE


def _rows(kits: Iterable[LogKit]) -> Iterator[_KitRow]:
    for log in kits:
        yield _KitRow(
            log=log.log,
            state=log.state.value,
            segments=len(log.segments),
            bytes=log.read_bytes,
            files=len(log.files),
            recovery_point=log.recovery_point,
            next_recovery_point=log.next_recovery_point,
            cut_segment=None if log.cut is None else log.cut.base_offset,
            cut_bytes=0 if log.cut is None else log.cut.size_bytes,
            cut_records=0 if log.cut is None else log.cut.records,
            message=log.message if log.cut is None else log.cut.reason,
        )


def _kit_state(row: _KitRow) -> str | None:
    return None if row.state == KitState.READY else f"{row.state}; {row.message}"


def _kit_line(row: _KitRow) -> str:
    if row.state != KitState.READY:
        return f"{row.log}: {row.state}; {row.message}"
    what = f"{row.segments} segments, {row.bytes} bytes, {row.files} files"
    points = f"recovery point {row.recovery_point} -> {row.next_recovery_point}"
    if row.cut_segment is None:
        return f"{row.log}: {row.state}, {what}, {points}"
    cut = (
        f"cuts {row.cut_bytes} bytes of segment {row.cut_segment}, whose headers name"
        f" {row.cut_records} records ({row.message})"
    )
    return f"{row.log}: {row.state}, {what}, {points}; {cut}"
