"""What a start cuts off, and which segments go with it.

1. A segment is cut where its first bad batch begins: a batch that was not written to its end, whose
   checksum does not fit, or that is zeros. What recovery does with an offset that goes back is in
   ``index.recovery``.
2. Where the second pass of a load, which recovers from the recovery point on, cuts a segment, all
   later segments go. The first pass, which recovers segments without index files, leaves them.
3. A segment whose offsets do not fit its base offset is split, and none of it is lost.

Source: LogLoader.recoverLog (4.3.1).
"""

from collections.abc import Mapping
from typing import NamedTuple

from kafka_segments.broker_rules.startup import lost_by_a_cut
from kafka_segments.index.segment import Damage, DamageKind
from kafka_segments.recovery.decide.starts import LogStart

TORN = (DamageKind.PARTIAL_BATCH, DamageKind.PREALLOCATED_TAIL, DamageKind.CORRUPT_BATCH)
"""The kinds of damage that a torn write leaves, at the end of a log."""
CUTS = (*TORN, DamageKind.OFFSET_GOES_BACK, DamageKind.BAD_MARKER)
"""The kinds of damage at which a segment is cut."""


class DamagedSegment(NamedTuple):
    """A segment that does not end where its file does.

    ``cut_records``: how many the headers of what is cut off tell of; None: they tell none.
    """

    damage: Damage
    cut_bytes: int
    cut_records: int | None


class Finding(NamedTuple):
    """What a start makes of a damaged segment.

    ``consequence``: ``cut``, ``split`` or ``refused`` (the broker does not start). ``lost_bytes``
    and ``lost_segments`` count the segments that go with it, too; ``lost_records`` those that the
    headers of what is cut off tell of, None where none is told.
    """

    topic: str
    partition: int
    folder: str
    base_offset: int
    consequence: str
    position: int
    lost_bytes: int
    lost_records: int | None
    lost_segments: int
    message: str


def decide_findings(
    start: LogStart, damaged: Mapping[int, DamagedSegment]
) -> tuple[list[Finding], LogStart]:
    """Say what a start makes of a log's damaged segments; return the start as it then goes.

    Args:
        start: as if nothing were damaged.
        damaged: what is known to be damaged, by base offset.
    """
    findings: list[Finding] = []
    gone: set[int] = set()
    for base, found in sorted(damaged.items()):
        if base in gone:
            continue
        consequence = _consequence(found)
        is_cut = consequence == "cut" and found.cut_bytes > 0
        lost = lost_by_a_cut(start.plan, base) if is_cut and base in start.unflushed else ()
        gone.update(lost)
        findings.append(
            Finding(
                start.log.topic,
                start.log.partition,
                start.log.folder,
                base,
                consequence,
                found.damage.position,
                (found.cut_bytes if consequence == "cut" else 0) + start.bytes_of(lost),
                found.cut_records if consequence == "cut" else 0,
                len(lost),
                found.damage.message,
            )
        )
    unflushed = tuple(base for base in start.unflushed if base not in gone)
    return findings, start._replace(unflushed=unflushed)


def _consequence(found: DamagedSegment) -> str:
    if found.damage.kind in CUTS:
        return "cut"
    return "split" if found.damage.kind == DamageKind.OFFSET_OVERFLOW else "refused"
