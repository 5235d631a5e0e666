"""The text of ``recovery-point-offset-checkpoint`` with other recovery points of some logs."""

from collections.abc import Mapping

from kafka_segments.errors import CorruptTextError
from kafka_segments.wire.checkpoints import RECOVERY_POINT, parse_offset_checkpoint

Points = Mapping[tuple[str, int], int]
"""Recovery points by topic and partition."""


def advanced(text: str | None, points: Points) -> str:
    """Return a checkpoint with other recovery points; all other lines stay as they are, in order.

    A log without a line gets one. ``text`` is None where there is no file. A file that a broker
    cannot read counts as empty: the broker takes 0 for each log then, so added lines are enough.

    Source: OffsetCheckpointFile, LogManager.loadLogs.
    """
    lines: list[str] = []
    left = dict(points)
    for line, key in _lines(text):
        point = left.pop(key, None)
        lines.append(line if point is None else _line(key, point))
    lines += [_line(key, point) for key, point in left.items()]
    return "".join(f"{line}\n" for line in ("0", str(len(lines)), *lines))


def points_of(text: str | None) -> dict[tuple[str, int], int]:
    """Return the recovery points as a broker reads them; none where it cannot read the file."""
    try:
        found = parse_offset_checkpoint(RECOVERY_POINT, text or "")
    except CorruptTextError:
        return {}
    return {(topic, partition): offset for topic, partition, offset in found}


def _lines(text: str | None) -> list[tuple[str, tuple[str, int]]]:
    keys = points_of(text)
    return list(zip((text or "").splitlines()[2:], keys, strict=True)) if keys else []


def _line(key: tuple[str, int], point: int) -> str:
    return f"{key[0]} {key[1]} {point}"
