"""Read what the fate of a log's leader epochs and producer snapshots depends on."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from kafka_segments.errors import FileChangedError
from kafka_segments.files.segments.segment_ends import first_leader_epoch, read_segment_end
from kafka_segments.files.storage.files import Place
from kafka_segments.kafka.broker_rules.index_files.judgement import LOG, OFFSET_INDEX, SNAPSHOT
from kafka_segments.kafka.broker_rules.start.epochs import LogAtStart
from kafka_segments.kafka.text.names import file_name, parse_segment_name
from kafka_segments.verbs.judge.audit.rows import Row


def read_log_at_start(log: Row, folder: Place, files: Mapping[str, int]) -> LogAtStart:
    """Read where a log ends as its start does; what cannot be read is not known.

    Args:
        log: with is_clean, recovery_point and log_start_offset.
        folder: its folder.
        files: bytes of the folder's plain files.
    """
    bases = sorted(base for name in files if (base := _offset(name, LOG)) is not None)
    snapshots = sorted(base for name in files if (base := _offset(name, SNAPSHOT)) is not None)
    recovered = None
    if bases and not log["is_clean"]:
        recovered = _first_recovered(bases, log["recovery_point"] or 0)
    start = LogAtStart(
        tuple(bases),
        tuple(snapshots),
        log["log_start_offset"] or 0,
        recovered_from=recovered,
    )
    if not bases:
        return start
    try:
        end = _end(folder, bases[-1], files, is_recovered=recovered is not None)
    except (OSError, FileChangedError):
        return start
    return start._replace(end_offset=end)


def has_leader_epochs(folder: Place, start: LogAtStart, files: Mapping[str, int]) -> bool | None:
    """Tell whether a log's batches have leader epochs; None: not known.

    The first batches of the first and of the last segment that has some tell it. ``files``: as of
    ``read_log_at_start``.
    """
    names = [name for base in start.bases if files[name := file_name(base, LOG)]]
    asked = dict.fromkeys((*names[:1], *names[-1:]))
    try:
        found = (first_leader_epoch(folder.child(name)) for name in asked)
        return any(epoch is not None and epoch >= 0 for epoch in found)
    except OSError:
        return None


def _offset(name: str, suffix: str) -> int | None:
    return parse_segment_name(name.removesuffix(suffix) + LOG) if name.endswith(suffix) else None


def _first_recovered(bases: Sequence[int], recovery_point: int) -> int:
    """Return the base of the segment that holds the recovery point, or of the last one."""
    holds = (base for base, after in pairwise(bases) if after > recovery_point)
    return next(holds, bases[-1])


def _end(folder: Place, base: int, files: Mapping[str, int], *, is_recovered: bool) -> int | None:
    """Return the log's end; None: the start ends with an error there, or it was not looked for."""
    end = read_segment_end(folder, base, files)
    if end.next_offset is None and (is_recovered or file_name(base, OFFSET_INDEX) not in files):
        return end.kept_offset
    return end.next_offset
