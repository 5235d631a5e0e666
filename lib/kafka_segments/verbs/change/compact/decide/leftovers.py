"""Find what a broker removes or renames in a partition's folder at its start, by names alone.

1. ``.deleted`` and ``.cleaned`` files are removed.
2. A ``.swap`` file is removed where its offset is not below the least of the ``.cleaned`` files. A
   broker puts any other one in place of the segments that it covers, so it is left to the broker.
3. An index file without its ``.log`` is removed, unless a ``.swap`` file waits to become that log.

Source: LogLoader.removeTempFilesAndCollectSwapFiles, loadSegmentFiles (3.0 and later).
"""

import re
from collections.abc import Set
from typing import NamedTuple

from kafka_segments.verbs.change.compact.decide.actions import IndexAction

_NAME = re.compile(r"([0-9]{20})\.(log|index|timeindex|txnindex)(\.deleted|\.cleaned|\.swap)?")
_LEFT_OVER = re.compile(r"([0-9]{20})(?:\..+)?\.(deleted|cleaned|swap)")


class Leftovers(NamedTuple):
    """Files to remove, each with the reason, and files that only a broker may resolve."""

    removable: dict[str, IndexAction]
    waiting: list[str]


def find_leftovers(names: Set[str], *, base_offsets: Set[int] | None = None) -> Leftovers:
    """Return the files of a partition's folder that are left over.

    Args:
        names: all file names in the folder.
        base_offsets: of the segments that index files belong to; None: the segments in ``names``.
    """
    parsed = {name: match for name in names if (match := _LEFT_OVER.fullmatch(name))}
    cleaned = [int(match[1]) for match in parsed.values() if match[2] == IndexAction.CLEANED]
    removable: dict[str, IndexAction] = {}
    waiting: list[str] = []
    for name, match in sorted(parsed.items()):
        if match[2] == IndexAction.SWAP and (not cleaned or int(match[1]) < min(cleaned)):
            waiting.append(name)
        else:
            removable[name] = IndexAction(match[2])
    if base_offsets is None:
        base_offsets = {
            int(match[1])
            for name in names
            if (match := _NAME.fullmatch(name)) and match[2] == "log" and match[3] is None
        }
    if not waiting:
        for name in sorted(names):
            match = _NAME.fullmatch(name)
            if (
                match
                and match[3] is None
                and match[2] != "log"
                and int(match[1]) not in base_offsets
            ):
                removable[name] = IndexAction.ORPHAN
    return Leftovers(removable, waiting)
