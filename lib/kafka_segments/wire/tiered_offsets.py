"""What ``kafka-get-offsets --time latest-tiered`` prints: one ``topic:partition:offset`` a line."""

import re

from kafka_segments.errors import CorruptTextError
from kafka_segments.wire.checkpoints import PartitionOffset

_LINE = re.compile(r"(\S+):([0-9]{1,9}):(-?[0-9]{1,18})?", re.ASCII)


def parse_tiered_offsets(name: str, text: str) -> list[PartitionOffset]:
    """Read the highest offset of each partition in remote storage; -1: none is there.

    A partition without an offset (no leader) is left out; of several lines the last counts.

    Raises:
        CorruptTextError: a line of another form.
    """
    found: dict[tuple[str, int], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise CorruptTextError(
                name, f"{line.strip()[:80]!r}: topic:partition:offset expected (line {number})"
            )
        if match[3] is not None:
            found[match[1], int(match[2])] = int(match[3])
    return [PartitionOffset(*partition, offset) for partition, offset in found.items()]
