"""The output of ``kafka-get-offsets --time latest-tiered``: lines of ``topic:partition:offset``."""

import re

from kafka_segments.errors import CorruptTextError
from kafka_segments.kafka.text.checkpoints import PartitionOffset

_LINE = re.compile(r"(\S+):([0-9]{1,9}):(-?[0-9]{1,18})?", re.ASCII)


def parse_tiered_offsets(name: str, text: str) -> list[PartitionOffset]:
    """Return the highest offset of each partition in remote storage; -1 means that it has none.

    A partition that has no leader is printed without an offset and is left out. If a partition
    has several lines, the last one counts.

    Raises:
        CorruptTextError: a line has another form.
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
