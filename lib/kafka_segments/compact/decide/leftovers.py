"""What a broker removes or renames in a partition's folder when it starts, by names alone.

1. ``.deleted`` and ``.cleaned`` files go.
2. A ``.swap`` file at or above the least ``.cleaned`` one goes; any other one a broker puts in
   place of the segments that it covers, so it is left to the broker.
3. An index file whose ``.log`` is not there goes; not while a ``.swap`` waits to become it.

Source: LogLoader.removeTempFilesAndCollectSwapFiles, loadSegmentFiles (3.0 and later).
"""

import re
from collections.abc import Set
from typing import NamedTuple

from kafka_segments.compact.decide.actions import Action

_NAME = re.compile(r"([0-9]{20})\.(log|index|timeindex|txnindex)(\.deleted|\.cleaned|\.swap)?")
_LEFT_OVER = re.compile(r"([0-9]{20})(?:\..+)?\.(deleted|cleaned|swap)")


class Leftovers(NamedTuple):
    """File names: by what they are, those to remove; those that only a broker may resolve."""

    removable: dict[str, Action]
    waiting: list[str]


def find_leftovers(names: Set[str], *, base_offsets: Set[int] | None = None) -> Leftovers:
    """Tell which of the names in a partition's folder are left over.

    Args:
        names: all file names in the folder.
        base_offsets: of the segments that index files may belong to; None: those in ``names``.
    """
    parsed = {name: match for name in names if (match := _LEFT_OVER.fullmatch(name))}
    cleaned = [int(match[1]) for match in parsed.values() if match[2] == Action.CLEANED]
    removable: dict[str, Action] = {}
    waiting: list[str] = []
    for name, match in sorted(parsed.items()):
        if match[2] == Action.SWAP and (not cleaned or int(match[1]) < min(cleaned)):
            waiting.append(name)
        else:
            removable[name] = Action(match[2])
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
                removable[name] = Action.ORPHAN
    return Leftovers(removable, waiting)
