"""List the log directories that a kit is made of, and plan their logs; in the driver."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kafka_segments.errors import SourceError, UsageError
from kafka_segments.files.folders import kinds
from kafka_segments.files.folders.listing_rows import Listed
from kafka_segments.files.folders.log_dir_folder import noted_offsets
from kafka_segments.files.folders.unread_notes import UnreadNotes, unread_in
from kafka_segments.files.folders.walk import walk_folders
from kafka_segments.files.node.log_dirs import is_txn_index_refused
from kafka_segments.files.node.producer_snapshots import is_snapshot_sound
from kafka_segments.files.storage.files import place
from kafka_segments.files.storage.folder_lock import refuse_locked
from kafka_segments.files.storage.links import without_option
from kafka_segments.files.storage.stores import store_of
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.text.checkpoints import LOG_START_OFFSET, RECOVERY_POINT
from kafka_segments.kafka.text.names import (
    TXN_INDEX_SUFFIX,
    FolderState,
    file_name,
    parse_partition_folder,
)
from kafka_segments.verbs.change.recovery.kit.plan import LogPlan, plan_log
from kafka_segments.verbs.change.recovery.kit_manifest import LogKit

_LOG_KINDS = (
    kinds.SEGMENT,
    kinds.LOG,
    kinds.UNRECOGNIZED,
    kinds.LEFT_OVER,
    kinds.NOT_FOLLOWED,
    kinds.UNLISTED,
)


class KitWork(NamedTuple):
    """What a kit has to do: the logs to read, and those that are not read, by log directory.

    ``gone``: how many logs the checkpoints name of each log directory in which none lies.
    ``notes``: directories whose recovery points or log starts were not read; they count as 0.
    """

    log_dirs: tuple[str, ...]
    plans: list[LogPlan]
    unread: list[tuple[int, LogKit]]
    gone: dict[str, int]
    notes: UnreadNotes

    @property
    def logs(self) -> tuple[tuple[str, ...], ...]:
        """Return the names of the logs of each log directory."""
        named = [(plan.number, plan.log) for plan in self.plans]
        named += [(number, log.log) for number, log in self.unread]
        return tuple(
            tuple(sorted(log for of, log in named if of == number))
            for number in range(len(self.log_dirs))
        )

    @property
    def read_bytes(self) -> int:
        """Return the bytes of all segments that are read."""
        return sum(plan.read_bytes for plan in self.plans)

    @property
    def segments(self) -> int:
        """Return how many segments are read."""
        return sum(len(plan.segments) for plan in self.plans)


def plan_kit(sources: Sequence[str], out: str) -> KitWork:
    """List the sources, and plan which segments of each log are read.

    ``sources`` and ``out`` are as ``absolute_uri`` gives them.

    A log whose folder cannot be listed is one that is not read.

    Raises:
        SourceError: a source cannot be listed, or a folder that is no log's.
        UsageError: a source is no log directory on a disk of this machine, a running broker holds
            one, the kit would lie in one, or a link leads to a folder that may be one.
    """
    for uri in (*sources, out):
        if not store_of(uri).is_local:
            raise UsageError(f"{uri}: a kit is made of disks that this machine has mounted, on one")
    for source in sources:
        if f"{out}/".startswith(f"{source.rstrip('/')}/"):
            raise UsageError(f"--out {out} lies in {source}: a broker does not start with it there")
    log_dirs, logs = _listed(sources)
    refuse_locked(log_dirs)
    gone = {
        path: len(row.offsets)
        for path, row in log_dirs.items()
        if row.offsets and not logs.get(path)
    }
    notes = unread_in(row for row in log_dirs.values() if _lacks_points(row))
    work = KitWork(tuple(log_dirs), [], [], gone, notes)
    for number, (path, row) in enumerate(log_dirs.items()):
        offsets = noted_offsets(row)
        for folder, rows in sorted(logs.get(path, {}).items()):
            planned = plan_log(
                rows,
                row,
                offsets=offsets,
                number=number,
                folder=folder,
                names=_names_in(folder),
                has_state=partial(_has_state, folder),
                is_refused=partial(_is_refused, folder),
            )
            if isinstance(planned, LogPlan):
                work.plans.append(planned)
            else:
                work.unread.append((number, planned))
    return work


def _lacks_points(log_dir: Listed) -> bool:
    return any(name in (log_dir.reason or "") for name in (RECOVERY_POINT, LOG_START_OFFSET))


_Logs = dict[str, dict[str, list[Listed]]]


def _listed(sources: Sequence[str]) -> tuple[dict[str, Listed], _Logs]:
    """Return the log directories, and the rows of their logs' folders, by their paths."""
    log_dirs: dict[str, Listed] = {}
    logs: _Logs = {}
    for row in _rows(sources):
        folder = join_uri(row.source, row.relative_path)
        if row.kind == kinds.LOG_DIR:
            log_dirs[folder] = row
            logs.setdefault(folder, {}).update((path, []) for path in _not_served(folder))
        elif row.kind in _LOG_KINDS and parse_partition_folder(folder.rpartition("/")[2]):
            logs.setdefault(folder.rpartition("/")[0], {}).setdefault(folder, []).append(row)
        elif row.kind == kinds.NOT_FOLLOWED and parse_partition_folder(row.name):
            logs.setdefault(folder, {})[join_uri(folder, row.name)] = [row]
        elif row.kind == kinds.NOT_FOLLOWED and Path(folder, row.name).is_dir():
            where = f"{join_uri(folder, row.name)}: {without_option(row.reason or '')}"
            raise UsageError(f"{where}; give the folder that it leads to as --source, instead")
        elif row.kind == kinds.UNLISTED:
            raise SourceError(folder, row.reason or "it cannot be listed")
    for source in sources:
        if not any(f"{path}/".startswith(f"{source.rstrip('/')}/") for path in log_dirs):
            raise UsageError(f"--source {source} is no log directory: give the one in log.dirs")
    return log_dirs, logs


def _not_served(log_dir: str) -> list[str]:
    """Return the folders of a log directory marked -delete or -stray: the listing lacks them."""
    found = ((entry, parse_partition_folder(entry.name)) for entry in Path(log_dir).iterdir())
    return [
        str(entry)
        for entry, parsed in found
        if parsed is not None and parsed.state in (FolderState.DELETE, FolderState.STRAY)
        if entry.is_dir() and not entry.is_symlink()
    ]


def _names_in(folder: str) -> list[str]:
    try:
        return [path.name for path in Path(folder).iterdir()]
    except OSError:
        return []  # its row says why, or its segments cannot be read either


def _rows(sources: Sequence[str]) -> Iterator[Listed]:
    for rows in walk_folders((source, "") for source in sources).folders:
        yield from rows


def _has_state(folder: str, offset: int) -> bool:
    """Tell whether a snapshot can be read; where not, a kit reads from an older one on."""
    try:
        return is_snapshot_sound(place(folder), offset)
    except OSError:
        return False


def _is_refused(folder: str, base_offset: int) -> bool:
    """Tell whether a broker refuses a segment's ``.txnindex``, or whether it cannot be read."""
    try:
        name = file_name(base_offset, TXN_INDEX_SUFFIX)
        return is_txn_index_refused(place(folder).child(name), base_offset)
    except OSError:
        return True
