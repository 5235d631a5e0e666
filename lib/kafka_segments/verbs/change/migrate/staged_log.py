"""A log's folder and the one staged for it: which of the two is in place, and the swap.

``<root>/<folder>.json``, the manifest, has size, mtime and SHA-256 of the files of both folders.
``<root>/<folder>`` is the folder that is not in place: the migrated one before ``put_in_place``,
the first one before ``put_back``. Each of them swaps in one step, ``exchange_folders``. So a
process that is killed leaves the one state or the other, and the inodes of the folders tell which.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, NamedTuple

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.backups import FileState, is_there
from kafka_segments.files.changes.folder_exchange import exchange_folders
from kafka_segments.files.changes.manifests import Count, Manifest, Part, read_manifest
from kafka_segments.files.changes.plain_files import check_folder
from kafka_segments.files.storage.durable_files import sha256_of
from kafka_segments.kafka.text.moments import mtime_text
from kafka_segments.kafka.text.names import LOG_SUFFIX

_READERS = 4  # of files at once: hashlib lets go of the interpreter's lock


class FolderFiles(Part):
    """The files of a folder, and its inode."""

    inode: Count
    files: tuple[FileState, ...]


class LogManifest(Manifest):
    """Both folders of a log."""

    remedy: ClassVar[str] = (
        "nothing is swapped: the other folder lies beside it; stage the log again, or move the"
        " folders by hand"
    )
    reads_unsigned: ClassVar[bool] = True

    folder: str
    before: FolderFiles
    after: FolderFiles


class Side(StrEnum):
    """Which of the two folders is in place: the first one, or the migrated one."""

    BEFORE = "before"
    AFTER = "after"


class LogState(NamedTuple):
    """What is on disk of a log; ``side`` None: the two folders cannot be told apart.

    ``is_staged``: the folder that is not in place exists and is complete.
    """

    side: Side | None
    is_staged: bool
    message: str


class StagedLog(NamedTuple):
    """A partition's folder, and the root of the staged folders of its log directory."""

    folder: Path
    root: Path

    @property
    def other(self) -> Path:
        """Return the folder that is not in place."""
        return self.root / self.folder.name

    @property
    def unfinished(self) -> Path:
        """Return the folder in which the migrated one is made."""
        return self.root / f"{self.folder.name}.unfinished"

    @property
    def parts(self) -> Path:
        """Return the folder for what staging notes of each segment."""
        return self.root / f"{self.folder.name}.parts"

    @property
    def manifest(self) -> Path:
        """Return the file that says what both folders hold."""
        return self.root / f"{self.folder.name}.json"


def manifest_of(log: StagedLog) -> LogManifest:
    """Return the manifest of a log.

    Raises:
        SetAsideError: the log has no manifest, it cannot be used, or is of another log.
    """
    manifest = read_manifest(log.manifest, LogManifest)
    if Path(manifest.folder).name != log.folder.name:  # a copy of the disk may lie elsewhere
        reason = f"folder: found {manifest.folder!a}, {log.folder} expected; {manifest.remedy}"
        raise SetAsideError(log.manifest, reason)
    return manifest


def log_state(log: StagedLog) -> LogState:
    """Return which folder is in place; only what is on disk decides.

    Raises:
        SetAsideError: a folder is a link, or the manifest cannot be used.
    """
    for path in (log.root, log.folder, log.other, log.unfinished, log.parts):
        if is_there(path):
            check_folder(path)
    if not is_there(log.other) or not is_there(log.manifest):
        begun = log.unfinished.exists() or log.parts.exists()
        return LogState(Side.BEFORE, False, "staging was begun" if begun else "nothing is staged")
    manifest = manifest_of(log)
    side = _side_in_place(log, manifest)
    if side is Side.AFTER:
        return LogState(side, True, _grown(log, manifest) or "migrated")
    if side is Side.BEFORE:
        return LogState(side, True, difference(log.folder, manifest.before.files) or "staged")
    return LogState(None, True, f"neither folder is as {log.manifest} says")


def _side_in_place(log: StagedLog, manifest: LogManifest) -> Side | None:
    """Return which folder is in place: by the inodes, or in a copy of the disk by the files."""
    inodes = (log.folder.stat().st_ino if log.folder.is_dir() else -1, log.other.stat().st_ino)
    if inodes == (manifest.before.inode, manifest.after.inode):
        return Side.BEFORE
    if inodes == (manifest.after.inode, manifest.before.inode):
        return Side.AFTER
    if difference(log.other, manifest.before.files) is None:
        return Side.AFTER
    if difference(log.other, manifest.after.files) is None:
        return Side.BEFORE
    return None


def check_put_in_place(log: StagedLog, *, by_mtime: bool = False) -> None:
    """Check that the migrated folder can be swapped in, unless it is in place already.

    The bytes of all its files must be those of the manifest. Logs that are the same file in both
    folders are not read: the swap does not change them. ``by_mtime``: no log is read.

    Raises:
        SetAsideError: a folder is not as it was staged.
    """
    if _checked_state(log).side is Side.AFTER:
        return
    manifest = manifest_of(log)
    changed = difference(log.folder, manifest.before.files)
    if changed is not None:
        raise SetAsideError(log.folder, f"{changed} since it was staged: plan again")
    spoilt = difference(log.other, manifest.after.files) or _altered(
        log, manifest.after, by_mtime=by_mtime
    )
    if spoilt is not None:
        raise SetAsideError(log.other, f"{spoilt} since it was staged: plan again")


def put_in_place(log: StagedLog, *, by_mtime: bool = False) -> None:
    """Swap the migrated folder in; if it is in place already, do nothing.

    Raises:
        SetAsideError: see ``check_put_in_place``.
        OSError: the swap was refused; nothing has changed.
    """
    check_put_in_place(log, by_mtime=by_mtime)
    if log_state(log).side is Side.BEFORE:
        exchange_folders(log.folder, log.other)


def check_put_back(log: StagedLog, *, discard: bool, by_mtime: bool = False) -> None:
    """Check that the first folder can be swapped back in, unless it is in place already.

    Bytes are compared as ``check_put_in_place`` does.

    Raises:
        SetAsideError: the first folder is not as it was. Or, unless ``discard``, segments have
            changed since the migration: their new records would be lost to consumers.
    """
    if _checked_state(log).side is Side.BEFORE:
        return
    manifest = manifest_of(log)
    spoilt = difference(log.other, manifest.before.files) or _altered(
        log, manifest.before, by_mtime=by_mtime
    )
    if spoilt is not None:
        raise SetAsideError(log.other, f"{spoilt} since it was set aside: it is not put back")
    grown = _grown(log, manifest)
    if grown is not None and not discard:
        raise SetAsideError(
            log.folder,
            f"{grown} since the migration: --discard-appended puts the first state back all the"
            f" same, what is there now then lies in {log.other}",
        )


def put_back(log: StagedLog, *, discard: bool, by_mtime: bool = False) -> None:
    """Swap the first folder back in; if it is in place already, do nothing.

    The migrated folder goes to where the first one was, so nothing is lost.

    Raises:
        SetAsideError: see ``check_put_back``.
        OSError: the swap was refused; nothing has changed.
    """
    check_put_back(log, discard=discard, by_mtime=by_mtime)
    if log_state(log).side is Side.AFTER:
        exchange_folders(log.folder, log.other)


def _checked_state(log: StagedLog) -> LogState:
    state = log_state(log)
    if not state.is_staged or state.side is None:
        raise SetAsideError(log.folder, state.message)
    return state


def _grown(log: StagedLog, manifest: LogManifest) -> str | None:
    """Return how segments have changed since the migration; None: they have not."""
    logs = [file for file in manifest.after.files if file.name.endswith(LOG_SUFFIX)]
    return difference(log.folder, logs, only=LOG_SUFFIX)


def difference(folder: Path, files: Sequence[FileState], *, only: str = "") -> str | None:
    """Return how the files of a folder differ by name, size or mtime; None: they do not.

    ``only``: compare only names with this suffix.
    """
    if not folder.is_dir():
        return "it is no folder"
    names = {entry.name for entry in folder.iterdir() if entry.name.endswith(only)}
    for file in files:
        if file.name not in names:
            return f"{file.name} is gone"
        names.remove(file.name)
        stat = (folder / file.name).lstat()
        if (stat.st_size, stat.st_mtime_ns) != (file.size_bytes, file.mtime_ns):
            return (
                f"{file.name} has {stat.st_size} bytes and mtime {mtime_text(stat.st_mtime_ns)},"
                f" it had {file.size_bytes} and {mtime_text(file.mtime_ns)}"
            )
    return f"{min(names)} has come" if names else None


def _altered(log: StagedLog, side: FolderFiles, *, by_mtime: bool) -> str | None:
    """Return which file of the folder that is not in place has other bytes; None: none has."""
    wanted = [
        file
        for file in side.files
        if not file.name.endswith(LOG_SUFFIX) or not (by_mtime or _is_in_both(log, file.name))
    ]
    with ThreadPoolExecutor(_READERS) as readers:
        digests = readers.map(sha256_of, [log.other / file.name for file in wanted])
        for file, digest in zip(wanted, digests, strict=True):
            if digest != file.sha256:
                return f"{file.name} has other bytes"
    return None


def _is_in_both(log: StagedLog, name: str) -> bool:
    """Tell whether a file is the same one in both folders, by a hard link."""
    in_place = log.folder / name
    return in_place.is_file() and in_place.samefile(log.other / name)
