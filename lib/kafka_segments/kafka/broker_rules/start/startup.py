"""What a broker (3.0 and later) does at start with the files of one partition's folder.

1. ``*.deleted`` and ``*.cleaned`` go, and so do ``*.swap`` from the least offset of a
   ``.cleaned`` on: an unfinished compaction is begun anew.
2. What is left of ``*.log.swap`` is a finished one: every file named by an offset from its base
   offset to below its next offset goes, then all ``*.swap`` lose the suffix. To learn the next
   offset the broker opens the segment: an ``.index.swap`` that is not there is made at full size,
   and its zeros then count as entries.
3. An index file without its ``.log`` goes.
4. Where ``.index`` is there and ``.timeindex`` is not, an empty time index is made; nothing
   rebuilds it.
5. A segment without ``.index`` is recovered, after a clean stop too.
6. After a hard stop the segment that holds the recovery point and all later ones are recovered;
   if one of them is cut, the ones after it go.

Other ``.index`` and ``.timeindex`` files are trusted without being read.
A ``.txnindex`` with a last offset below its base offset also counts as a missing ``.index``; a
plan by names cannot tell.

Source: LogLoader.load, removeTempFilesAndCollectSwapFiles, loadSegmentFiles, recoverLog.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka_segments.kafka.text.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
)

_LOG_SWAP = LOG_SUFFIX + SWAP_SUFFIX
_MAX_INT64 = 2**63 - 1
_NO_OFFSET = -1  # of a name at which the broker ends


class StartupPlan(NamedTuple):
    """What the start does, in this order: files by their names, segments by their base offsets.

    ``zero_filled``: indexes that rule 2 makes. ``emptied``: time indexes of rule 4.
    ``recovered_first``: they lack an index; if one is cut, later segments stay.
    ``recovered_second``: after a hard stop, up to one that is cut; later ones are deleted.
    ``trusted``: segments whose indexes are taken as they are.
    ``created``: an empty segment, where none is left.
    """

    deleted: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    zero_filled: tuple[str, ...]
    emptied: tuple[str, ...]
    recovered_first: tuple[int, ...]
    recovered_second: tuple[int, ...]
    trusted: tuple[int, ...]
    created: int | None


def plan_startup(
    names: Iterable[str],
    *,
    is_clean: bool,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    swap_end_offsets: Mapping[int, int] | None = None,
) -> StartupPlan:
    """Say what a broker does with the files named ``names`` when it starts.

    Args:
        names: the files of one partition's folder.
        is_clean: ``.kafka_cleanshutdown`` was in the log directory.
        recovery_point: first offset not known to be flushed, from its checkpoint.
        log_start_offset: from its checkpoint.
        swap_end_offsets: next offset of each ``.log.swap`` by its base offset.

    Raises:
        KeyError: ``swap_end_offsets`` lacks a ``.log.swap`` that is to replace segments.
    """
    files = sorted(names)
    deleted, swaps = _unfinished(files)
    gone = {*deleted, *swaps}
    left = [name for name in files if name not in gone]
    replaced = _replaced(left, swaps, swap_end_offsets or {})
    renamed = [(name, name.removesuffix(SWAP_SUFFIX)) for name in swaps]
    there = set(left).difference(replaced).union(name for _, name in renamed)
    zero_filled = _zero_filled(swaps)
    there.update(zero_filled)
    logs = sorted({_offset(name) for name in there if name.endswith(LOG_SUFFIX)} - {_NO_OFFSET})
    bases = set(logs)
    orphans = [
        name for name in there if name.endswith(INDEX_SUFFIXES) and _offset(name) not in bases
    ]
    there.difference_update(orphans)
    first = tuple(base for base in logs if file_name(base, OFFSET_INDEX_SUFFIX) not in there)
    second = () if is_clean else _from_recovery_point(logs, recovery_point)
    recovered = {*first, *second}
    return StartupPlan(
        deleted=(*deleted, *replaced, *sorted(orphans)),
        renamed=tuple(renamed),
        zero_filled=zero_filled,
        emptied=_without_time_index(logs, there),
        recovered_first=first,
        recovered_second=second,
        trusted=tuple(base for base in logs if base not in recovered),
        created=None if logs else log_start_offset,
    )


def unread_swaps(names: Iterable[str]) -> dict[str, bool]:
    """Return the ``.log.swap`` files whose records no ``.log`` holds, and whether each stays.

    Those of a compaction have replaced the ``.log`` of their base offset, or its first one. Of a
    split, later ones hold what the first ``.log`` does until its own ``.swap`` has replaced it.
    """
    files = list(names)
    swaps = {_offset(name): name for name in files if name.endswith(_LOG_SWAP)}
    if not swaps:
        return {}
    kept = set(_unfinished(files)[1])
    logs = [_offset(name) for name in files if name.endswith(LOG_SUFFIX)]
    unread = {}
    for base, name in swaps.items():
        before = max((log for log in logs if log <= base), default=_NO_OFFSET)
        if base != _NO_OFFSET and (before == _NO_OFFSET or before not in swaps):
            unread[name] = name in kept
    return unread


def lost_by_a_cut(plan: StartupPlan, damaged: int) -> tuple[int, ...]:
    """Return the segments that go because the one at base offset ``damaged`` has a bad batch.

    Only the second pass deletes later segments. It finds nothing bad in a segment that the first
    pass has cut, and does not read one that is trusted: after both all segments stay.
    """
    if damaged in plan.recovered_first or damaged not in plan.recovered_second:
        return ()
    return tuple(base for base in plan.recovered_second if base > damaged)


def _offset(name: str) -> int:
    """Return the offset in a file's name, -1 where there is none."""
    digits = name.partition(".")[0]
    offset = int(digits) if digits.isdecimal() and digits.isascii() else _NO_OFFSET
    return offset if offset <= _MAX_INT64 else _NO_OFFSET


def _unfinished(files: list[str]) -> tuple[list[str], list[str]]:
    """Return the files of rule 1 that go, and the ``.swap`` files that stay."""
    least_cleaned = min(
        (_offset(name) for name in files if name.endswith(CLEANED_SUFFIX)), default=None
    )
    deleted, swaps = [], []
    for name in files:
        is_swap = name.endswith(SWAP_SUFFIX)
        is_half = is_swap and least_cleaned is not None and _offset(name) >= least_cleaned
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX)) or is_half:
            deleted.append(name)
        elif is_swap:
            swaps.append(name)
    return deleted, swaps


def _replaced(files: list[str], swaps: list[str], end_offsets: Mapping[int, int]) -> list[str]:
    """Return the files of the segments that finished ``.log.swap`` files replace."""
    bases = [_offset(name) for name in swaps if name.endswith(_LOG_SWAP)]
    bases = [base for base in bases if base != _NO_OFFSET]
    if not bases:
        return []
    end = max(end_offsets[base] for base in bases)
    return [name for name in files if min(bases) <= _offset(name) < end]


def _zero_filled(swaps: list[str]) -> tuple[str, ...]:
    """Return the offset indexes of finished segments that have none."""
    indexes = (
        file_name(_offset(name), OFFSET_INDEX_SUFFIX)
        for name in swaps
        if name.endswith(_LOG_SWAP) and _offset(name) != _NO_OFFSET
    )
    return tuple(index for index in indexes if index + SWAP_SUFFIX not in swaps)


def _without_time_index(logs: list[int], there: set[str]) -> tuple[str, ...]:
    """Return the time indexes of rule 4."""
    names = (
        (file_name(base, OFFSET_INDEX_SUFFIX), file_name(base, TIME_INDEX_SUFFIX)) for base in logs
    )
    return tuple(time for offset, time in names if offset in there and time not in there)


def _from_recovery_point(logs: list[int], recovery_point: int) -> tuple[int, ...]:
    """Return the segment that holds the recovery point and all later ones."""
    floor = max((base for base in logs if base <= recovery_point), default=recovery_point)
    return tuple(base for base in logs if base >= floor)
