"""Remove what builds that died left in a warehouse."""

from pathlib import Path

from pyarrow import fs

from kafka_segments.files.storage.durable_files import older_temporaries
from kafka_segments.files.storage.files import Place, list_folder, place
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.files.storage.publishing import remove_folder
from kafka_segments.files.storage.stores import store_of
from kafka_segments.files.storage.uris import join_uri

_DAY_NS = 86_400 * 10**9
_STALE_DAYS = 1
_STALE_DAYS_UNLOCKED = 7  # no lock tells that no build is running


def remove_stale_builds(warehouse: str, *, now_ms: int, dry_run: bool) -> list[str]:
    """Remove the folders of entry files that no build will read; return their names.

    A folder is stale once its newest file is a day old; on stores without locks, a week.
    """
    entries = join_uri(warehouse, "_entries")
    folder = place(entries)
    if folder.filesystem.get_file_info(folder.path).type != fs.FileType.Directory:
        return []
    days = _STALE_DAYS if store_of(entries).has_locks else _STALE_DAYS_UNLOCKED
    oldest = now_ms * 1_000_000 - days * _DAY_NS
    folders = (entry for entry in list_folder(folder) if entry.is_folder and entry.link is None)
    stale = [entry.name for entry in folders if _newest(folder, entry) < oldest]
    for name in stale:
        if not dry_run:
            remove_folder(folder.child(name))
    return stale


def remove_unfinished(warehouse: str, *, now_ms: int, dry_run: bool) -> list[str]:
    """Remove the temporary files, a day old, that runs which died left among tables on a disk.

    They lie beside the tables, in a table or in its log. Return their paths.
    """
    if not store_of(warehouse).is_local:
        return []
    root = Path(place(warehouse).path)
    before_ns = now_ms * 1_000_000 - _STALE_DAYS * _DAY_NS
    folders = (root, *sorted(root.glob("*/")), *sorted(root.glob("*/_delta_log/")))
    plain = (folder for folder in folders if not folder.is_symlink())
    left = [path for folder in plain for path in older_temporaries(folder, before_ns=before_ns)]
    for path in left:
        if not dry_run:
            path.unlink(missing_ok=True)
    return [str(path) for path in left]


def _newest(folder: Place, entry: FileEntry) -> int:
    """Return the newest mtime in ns of an entry and all below it; 0 for an empty folder."""
    below = folder.child(entry.name)
    entries = list_folder(below) if entry.is_folder else []
    return max(entry.mtime_ns, *(_newest(below, found) for found in entries), 0)
