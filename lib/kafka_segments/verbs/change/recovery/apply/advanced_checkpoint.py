"""The text of ``recovery-point-offset-checkpoint`` with other recovery points of some logs."""

from collections.abc import Mapping

from kafka_segments.errors import CorruptTextError
from kafka_segments.kafka.text.checkpoints import (
    RECOVERY_POINT,
    java_lines,
    parse_offset_checkpoint,
)

Points = Mapping[tuple[str, int], int]
"""Recovery points by topic and partition."""


def advanced(text: str | None, points: Points) -> str:
    """Return a checkpoint with other recovery points; all other lines stay as they are, in order.

    A log without a line gets one; of a log with several, of which a broker takes the last, all are
    changed. ``text`` is None where there is no file. A file that a broker cannot read counts as
    empty: the broker takes 0 for each log then, so added lines are enough.

    Source: OffsetCheckpointFile, LogManager.loadLogs.
    """
    lines = [
        _line(key, points[key]) if points.get(key, point) != point else line
        for line, key, point in _lines(text)
    ]
    known = points_of(text)
    lines += [_line(key, point) for key, point in points.items() if key not in known]
    return "".join(f"{line}\n" for line in ("0", str(len(lines)), *lines))


def points_of(text: str | None) -> dict[tuple[str, int], int]:
    """Return the recovery points as a broker reads them; none where it cannot read the file."""
    return {key: point for _, key, point in _lines(text)}


def _lines(text: str | None) -> list[tuple[str, tuple[str, int], int]]:
    """Return each line with its log and recovery point; none where a broker cannot read them."""
    try:
        found = parse_offset_checkpoint(RECOVERY_POINT, text or "")
    except CorruptTextError:
        return []
    lines = java_lines(text or "")[2:]
    return [
        (line, (topic, partition), point)
        for line, (topic, partition, point) in zip(lines, found, strict=True)
    ]


def _line(key: tuple[str, int], point: int) -> str:
    return f"{key[0]} {key[1]} {point}"
