"""Which segments a partition's folder has once a start has finished its ``.swap`` files."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka_segments.errors import FileChangedError
from kafka_segments.files.storage.files import Place
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.kafka.broker_rules.start.startup import plan_startup
from kafka_segments.kafka.text.names import LOG_SUFFIX, SWAP_SUFFIX, parse_segment_name

_LOG_SWAP = LOG_SUFFIX + SWAP_SUFFIX


class Swaps(NamedTuple):
    """The ``.log.swap`` files that become segments, and why each ``.log`` goes that goes.

    ``segments``: their base offsets. Both by the names of the files.
    """

    segments: Mapping[str, int]
    replaced: Mapping[str, str]


NO_SWAPS = Swaps({}, {})


def finished_swaps(folder: Place, entries: Sequence[FileEntry]) -> Swaps:
    """Say what a start makes of the ``.log.swap`` files of a folder; rules: ``plan_startup``.

    If one cannot be read up to its end, no swap counts: the broker does not start.
    """
    files = {
        entry.name: entry.size_bytes
        for entry in entries
        if not entry.is_folder and entry.oddity is None
    }
    swaps = {name: base for name in files if (base := _base_of_swap(name)) is not None}
    if not swaps:
        return NO_SWAPS
    # A listing does not wait for compiled code, which few folders need.
    from kafka_segments.files.segments.segment_ends import read_segment_end  # noqa: PLC0415

    ends = {}
    for base in swaps.values():
        try:
            end = read_segment_end(
                folder, base, files, suffix=SWAP_SUFFIX, most_walked=float("inf")
            )
        except (OSError, FileChangedError):
            return NO_SWAPS
        if end.next_offset is None:
            return NO_SWAPS
        ends[base] = end.next_offset
    plan = plan_startup(files, is_clean=False, swap_end_offsets=ends)
    renamed = {old: new for old, new in plan.renamed if old in swaps}
    gone = {*plan.deleted, *renamed.values()}
    return Swaps(
        {old: swaps[old] for old in renamed},
        {
            name: f"a broker's start puts {', '.join(sorted(renamed))} in its place"
            for name in files
            if name in gone and parse_segment_name(name) is not None
        },
    )


def _base_of_swap(name: str) -> int | None:
    if not name.endswith(_LOG_SWAP):
        return None
    return parse_segment_name(name.removesuffix(SWAP_SUFFIX))
