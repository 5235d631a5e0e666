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

from kafka_segments.kafka.broker_rules.start.log_start import LogStart
from kafka_segments.kafka.broker_rules.start.node import sum_or_none
from kafka_segments.kafka.broker_rules.start.startup import lost_by_a_cut
from kafka_segments.kafka.index.segment.recovered_segment import Damage, DamageKind

TORN = (DamageKind.PARTIAL_BATCH, DamageKind.PREALLOCATED_TAIL, DamageKind.CORRUPT_BATCH)
"""The kinds of damage that a torn write leaves, at the end of a log."""
CUTS = (*TORN, DamageKind.OFFSET_GOES_BACK, DamageKind.BAD_MARKER)
"""The kinds of damage at which a segment is cut."""


class DamagedSegment(NamedTuple):
    """A segment that does not end where its file does.

    ``cut_records``: how many records the headers in the cut-off bytes name; None: they name none.
    ``next_offset``: of what is left of it; None: not known.
    """

    damage: Damage
    cut_bytes: int
    cut_records: int | None
    next_offset: int | None = None


class Finding(NamedTuple):
    """What a start makes of a damaged segment.

    ``consequence``: ``cut``, ``split`` or ``refused`` (the broker does not start). The lost bytes
    and records include those of the later segments that go with it. ``lost_records``: of cut-off
    bytes as many as headers there name; None: they name none, or a lost segment's records were
    not counted. ``next_offset``: where the segment ends once it is cut; None: not known.
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
    next_offset: int | None = None


class Lost(NamedTuple):
    """The later segments that go when one is cut; ``records`` None: not all are known."""

    size_bytes: int
    segments: int
    records: int | None


NOTHING = Lost(0, 0, 0)


def decide_findings(
    start: LogStart, damaged: Mapping[int, DamagedSegment], records: Mapping[int, int | None]
) -> tuple[list[Finding], LogStart]:
    """Return what a start makes of a log's damaged segments, and the start without those that go.

    Args:
        start: what the start would do if nothing were damaged.
        damaged: the segments that are known to be damaged, by base offset.
        records: how many records whole segments have, by base offset; None: not counted.
    """
    findings: list[Finding] = []
    gone: set[int] = set()
    for base, found in sorted(damaged.items()):
        if base in gone:
            continue
        lost: tuple[int, ...] = ()
        if is_cut(found) and base in start.unflushed:
            lost = lost_by_a_cut(start.plan, base)
        gone.update(lost)
        going = Lost(start.bytes_of(lost), len(lost), sum_or_none(map(records.get, lost)))
        log = start.log
        findings.append(finding_of(log.topic, log.partition, log.folder, base, found, going))
    unflushed = tuple(base for base in start.unflushed if base not in gone)
    return findings, start._replace(unflushed=unflushed)


def finding_of(
    topic: str, partition: int, folder: str, base: int, found: DamagedSegment, lost: Lost
) -> Finding:
    """Return what a start makes of a damaged segment, with which the segments ``lost`` go."""
    consequence = _consequence(found)
    cut = Lost(found.cut_bytes, 0, found.cut_records) if consequence == "cut" else NOTHING
    return Finding(
        topic,
        partition,
        folder,
        base,
        consequence,
        found.damage.position,
        cut.size_bytes + lost.size_bytes,
        sum_or_none([cut.records, lost.records]),
        lost.segments,
        found.damage.message,
        found.next_offset,
    )


def is_cut(found: DamagedSegment) -> bool:
    """Tell whether a start cuts a segment."""
    return _consequence(found) == "cut" and found.cut_bytes > 0


def _consequence(found: DamagedSegment) -> str:
    if found.damage.kind in CUTS:
        return "cut"
    return "split" if found.damage.kind == DamageKind.OFFSET_OVERFLOW else "refused"
