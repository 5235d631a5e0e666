"""Whether the log of a Delta table is whole, and how what is broken of it is set aside.

Power lost after a commit that was not synced, a copy cut short and the like leave a commit without
bytes or with a part of them. Delta itself takes a commit of 0 bytes for one that did nothing: the
table answers fewer rows; at a part of one its parser fails and names no file.

Source: delta-io/delta PROTOCOL.md, Delta Log Entries, Checkpoints, Action Reconciliation.
"""

import re
from contextlib import suppress
from typing import NamedTuple

from pyarrow import fs

from kafka_segments.errors import BrokenTableError, SourceError
from kafka_segments.files.delta.data_files import OTHER_BYTES, broken_data
from kafka_segments.files.delta.log import (
    CHECKPOINT,
    MOST_COMMIT_BYTES,
    TableLog,
    last_version,
    list_log,
    version_of,
)
from kafka_segments.files.delta.notes import NOTES, OF_SOURCES, NotedLog, noted_log, noted_logs
from kafka_segments.files.storage.files import list_folder, place
from kafka_segments.files.storage.folder_lock import commit_lock
from kafka_segments.files.storage.hadoop_checksums import has_other_checksums
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.files.storage.uris import join_uri

OF_BUILD = (*OF_SOURCES, "runs")
"""The tables that a build makes from its sources."""
_RECORDS, _FILES = "internal_records", "internal_files"
_KEPT = "_broken_commits"
_NO_CHANGE = '{"commitInfo":{}}'
"""A commit that does nothing."""
_CHECKSUM = re.compile(r"\.?([0-9]{20})(?:\.[a-z.]+)?\.crc")
_SOUND: set[tuple[str, str, int, int]] = set()
"""Newest commits and checkpoints that were read as a whole: table, name, bytes, mtime."""
_AS_NOTED: set[tuple[str, str, int, int, int | None]] = set()
"""Commits that have the CRC-32 that is noted: table, name, bytes, mtime, CRC-32."""


class Broken(NamedTuple):
    """A file of a table that is not whole.

    Attributes:
        table: URI of the table.
        file: its path below the table.
        why: what was found, in words.
        is_newest: it is the newest commit: without it the table is as it was one version before.
        is_cut: commits were taken away from the end of the log, what is left of it is whole; or
            nobody knows whether they were.
        is_told_by_commits: it is a checkpoint, and all commits are there that it stands for.
        is_in_checkpoint: it is a commit that is gone, and the checkpoint of its version is there.
        is_of: the name of the table whose log it is, in the folder of this one; empty: its own.
    """

    table: str
    file: str
    why: str
    is_newest: bool = False
    is_cut: bool = False
    is_told_by_commits: bool = False
    is_in_checkpoint: bool = False
    is_of: str = ""

    @property
    def name(self) -> str:
        """The table's name."""
        return self.table.rstrip("/").rpartition("/")[2]

    @property
    def text(self) -> str:
        """Return in words what is broken, and the step that mends it."""
        if self.is_of:
            return misplaced(self.table, self.is_of)
        return f"table {self.table} is broken: {self.file} {self.why.rstrip('.')}. {self._step()}"

    def _step(self) -> str:
        if self.is_told_by_commits:
            return (
                "Move that file away, and with it the .crc files of its name and _last_checkpoint"
                " beside it: the commits are all there, and tell the same"
            )
        if self.is_in_checkpoint:
            return (
                f"Write '{_NO_CHANGE}' into a file of that name: the checkpoint beside it has all"
                " rows"
            )
        if self.name in OF_BUILD and self.is_newest:
            return "`kafka-segments build` sets it aside, reads all again and makes the table whole"
        if self.name in OF_BUILD and self.is_cut:
            return "`kafka-segments build` reads all again and makes the table whole"
        anew = made_anew(self.table)
        if self.name in OF_BUILD:
            return f"Move {anew}"
        notes = join_uri(self.table.rstrip("/").rpartition("/")[0], NOTES)
        if self.file.endswith(NOTES):
            return f"Move {notes} away to take tables as they are, last runs may be missing"
        if anew is not None:
            return f"Move {anew}"
        if self.is_newest:
            return (
                f"Move that file away, and with it the .crc files of its name and {notes}: the"
                " table is then as it was before its last run, which is to be run again"
            )
        if self.is_cut:
            return (
                f"Restore {self.table} from a copy; or move {notes} away to take it as it is, what"
                " its last runs kept may then be missing"
            )
        return f"Restore {self.table} from a copy, or move it away: what it kept is then lost"


def misplaced(table: str, other: str) -> str:
    """Return in words that the folder of a table holds another one, and the step."""
    warehouse, _, name = table.rstrip("/").rpartition("/")
    return (
        f"{table} holds table {other}, not {name}: folders were renamed, or exchanged. Rename it to"
        f" {join_uri(warehouse, other)}, and what lies there to its own name"
    )


def made_anew(table: str) -> str | None:
    """Return in words, behind ``move``, how a table is made anew; None: its rows would be lost."""
    name = table.rstrip("/").rpartition("/")[2]
    if name in OF_BUILD:
        return f"{table} away: `kafka-segments build --full` makes it anew"
    if name in (_RECORDS, _FILES) or name.startswith("metadata_"):
        too = "" if name in (_RECORDS, _FILES) else f" and {_RECORDS} beside it"
        return (
            f"{table}{too} away: `kafka-segments internals read` of the disks of its clusters makes"
            " what they held anew"
        )
    return None


def broken_log(table: str) -> Broken | None:
    """Return what is broken of a table's log by its names, their sizes and the newest commit.

    A log that is not as it was noted was cut back, or one of its commits was.
    None: nothing, or there is no table.
    """
    return _looked_at(table)[1]


def _looked_at(table: str, *, anew: bool = False) -> tuple[TableLog, Broken | None]:
    """Return the log of a table, and what is broken of it."""
    try:
        noted = noted_log(table, anew=anew)
    except ValueError as error:
        why = f"{error}: whether commits were taken away, or cut, is not known"
        return list_log(table), Broken(table, f"../{NOTES}", why, is_cut=True)
    log = list_log(table)
    broken = _broken_commit(log) or _other_checkpoint(log)
    if broken is None and noted is not None:
        broken = _not_as_noted(log, noted)
        broken = broken and (_of_other_table(log) or broken)
        if broken is not None and not anew:  # the notes may be older than what mended the table
            return _looked_at(table, anew=True)
    return log, broken


def _broken_commit(log: TableLog) -> Broken | None:
    commits = log.commits
    for entry in commits:
        if not entry.size_bytes:
            return Broken(log.table, _in_log(entry), "has 0 bytes", entry is commits[-1])
    if not commits:
        return None
    newest = commits[-1]
    identity = (log.table, newest.name, newest.size_bytes, newest.mtime_ns)
    if identity in _SOUND:
        return None
    why = _why_no_commit(log, newest)
    if why is None:
        _SOUND.add(identity)
        return None
    return Broken(log.table, _in_log(newest), why, is_newest=True)


def _other_checkpoint(log: TableLog) -> Broken | None:
    """Return the newest checkpoint if it has not the bytes that it was written with."""
    newest = log.checkpoint
    why = None if newest is None else _why_other_checkpoint(log, newest)
    return None if newest is None or why is None else _broken_checkpoint(log, newest, why)


def _why_other_checkpoint(log: TableLog, newest: FileEntry) -> str | None:
    told = log.written_checkpoint
    if (
        told is not None
        and told.version == version_of(newest)
        and told.size_bytes != newest.size_bytes
    ):
        return f"has {newest.size_bytes} bytes, it was written with {told.size_bytes}"
    file = log.file(newest.name)
    identity = (log.table, newest.name, newest.size_bytes, newest.mtime_ns)
    if identity in _SOUND or not file.store.is_local:
        return None
    try:
        if has_other_checksums(file.path):
            return OTHER_BYTES
    except OSError as error:
        return f"cannot be read: {error}"
    _SOUND.add(identity)
    return None


def _broken_checkpoint(log: TableLog, checkpoint: FileEntry, why: str) -> Broken:
    """Return a checkpoint as broken: whether commits tell what it told is looked at."""
    others = log.without(checkpoint)
    is_told = (
        _first_gap(others) is None
        and not any(_why_no_commit(others, entry) for entry in others.commits)
        and others.version == log.version
    )
    return Broken(log.table, _in_log(checkpoint), why, is_told_by_commits=is_told)


def _of_other_table(log: TableLog) -> Broken | None:
    """Return a log that is not as it was noted, if it is as that of another table was."""
    noted = noted_logs(log.table.rstrip("/").rpartition("/")[0])
    other = next((name for name, one in noted.items() if _is_as_noted(log, one)), None)
    return None if other is None else Broken(log.table, "_delta_log", "is another's", is_of=other)


def _is_as_noted(log: TableLog, noted: NotedLog) -> bool:
    """Tell whether a log has commits, and all of them are noted as they are."""
    sizes = {version_of(entry): entry.size_bytes for entry in log.commits}
    is_same = bool(sizes) and sizes == dict(noted.commit_bytes)
    return is_same and not any(_has_other_crc(log, entry, noted) for entry in log.commits)


def _not_as_noted(log: TableLog, noted: NotedLog) -> Broken | None:
    """Return what of a log is not as it was when the table was last written."""
    table, commits = log.table, log.commits
    for entry in commits:
        there = noted.commit_bytes.get(version_of(entry), entry.size_bytes)
        if entry.size_bytes != there:
            why = f"has {entry.size_bytes} bytes, it was committed with {there}"
            return Broken(table, _in_log(entry), why, entry is commits[-1])
        if _has_other_crc(log, entry, noted):
            why = "has not the bytes with which it was committed, by their CRC-32"
            return Broken(table, _in_log(entry), why, entry is commits[-1])
    if log.version is None:
        why = f"is not there, version {noted.version} had been committed"
        is_made, folder = table.rstrip("/").rpartition("/")[2] in OF_BUILD, place(table)
        kind = folder.filesystem.get_file_info(folder.path).type
        if not is_made and kind == fs.FileType.NotFound:
            return None  # it was moved away: what it kept is then lost
        return Broken(table, "_delta_log", why, is_cut=is_made)
    if log.version >= noted.version:
        return None
    newest = log.file(f"{noted.version:020d}.json")
    if newest.filesystem.get_file_info(newest.path).type == fs.FileType.File:
        return None  # on a mount of another machine, a listing may be older than a commit
    why = f"ends with version {log.version}, version {noted.version} had been committed"
    return Broken(table, "_delta_log", why, is_cut=True)


def _has_other_crc(log: TableLog, entry: FileEntry, noted: NotedLog) -> bool:
    """Tell whether a commit on a disk has not the CRC-32 that is noted; each is read once."""
    expected = noted.commit_crcs.get(version_of(entry))
    known = (log.table, entry.name, entry.size_bytes, entry.mtime_ns, expected)
    if expected is None or known in _AS_NOTED:
        return False
    crc = log.crc(entry)
    if crc == expected:
        _AS_NOTED.add(known)
    return crc is not None and crc != expected


def refuse_broken_log(table: str) -> TableLog:
    """Refuse a table whose log is broken, see ``broken_log``; return a sound one.

    Raises:
        BrokenTableError: names the file, and the step.
    """
    log, broken = _looked_at(table)
    if broken is not None:
        raise BrokenTableError(broken.text)
    return log


def refuse_broken_file(table: str, error: Exception) -> None:
    """Refuse a table that could not be read since a file of it is not whole, see ``broken_file``.

    Without such a file it is another version by now, or of a kind that who asked cannot read.

    Raises:
        BrokenTableError: names the file, and the step.
    """
    try:
        broken = broken_file(table, str(error))
    except (OSError, SourceError):
        return
    if broken is not None:
        raise BrokenTableError(broken.text) from error


def version_if_there(table: str) -> int | None:
    """Return the last version of a table, None without a table: whoever does without asks for it.

    Raises:
        BrokenTableError: it has no log any more, and was not moved away.
    """
    version = last_version(table)
    if version is None:
        refuse_broken_log(table)
    return version


def broken_file(table: str, said: str = "") -> Broken | None:
    """Return the first file of a table that is not whole: of its log, or one of its data.

    All commits since the last checkpoint are read, and the checkpoint. On a local disk each data
    file is looked for, which takes its time where a table is large; a store would be asked for
    each. One that ``said`` names, how a verb failed, is looked at. None: nothing was found, or
    there is no table.

    Raises:
        SourceError, OSError: the log cannot be listed, or a file went meanwhile.
    """
    log, found = _looked_at(table)
    if found is not None:
        return found
    gap = _first_gap(log)
    if gap is not None:
        return Broken(table, f"_delta_log/{gap:020d}.json", "is not there, later commits are")
    for entry in log.commits:
        why = _why_no_commit(log, entry)
        if why is not None:
            return Broken(table, _in_log(entry), why)
    found_data = broken_data(log, said)
    if found_data is None:
        return _without_last_commit(log)
    path, why = found_data
    checkpoint = log.checkpoint
    if checkpoint is not None and path == _in_log(checkpoint):
        return _broken_checkpoint(log, checkpoint, why)
    return Broken(table, path, why)


def _without_last_commit(log: TableLog) -> Broken | None:
    """Return the last commit if only its checkpoint is there: Spark wants both, others do not."""
    if log.version is None:
        return None
    name = f"{log.version:020d}.json"
    if any(entry.name == name for entry in log.entries):
        return None
    why = "is not there, its checkpoint is: Spark reads no table without its last commit"
    return Broken(log.table, f"_delta_log/{name}", why, is_in_checkpoint=True)


def _first_gap(log: TableLog) -> int | None:
    """Return the first version that is missing of those since the last checkpoint."""
    versions = [version_of(entry) for entry in log.commits]
    checkpoints = [entry.name for entry in log.entries if ".checkpoint." in entry.name]
    if not versions or all(map(CHECKPOINT.fullmatch, checkpoints)):
        first = int(max(checkpoints)[:20]) + 1 if checkpoints else 0
    else:  # one in several files, say: which is the last whole one only Spark can tell
        first = versions[0]
    return next((n for n in range(first, max(versions, default=0)) if n not in versions), None)


def first_broken(warehouse: str, said: str = "") -> Broken | None:
    """Return the first file of a warehouse's tables that is not whole, see ``broken_file``.

    Tables that cannot be looked at are passed over.
    """
    try:
        folders = sorted(entry.name for entry in list_folder(place(warehouse)) if entry.is_folder)
    except SourceError:
        return None
    tables = (join_uri(warehouse, name) for name in folders if not name.startswith(("_", ".")))
    for table in tables:
        with suppress(SourceError, OSError):
            found = broken_file(table, said)
            if found is not None:
                return found
    return None


def remove_checksums_behind(table: str) -> None:
    """Remove the checksums of commits that were taken away from the end of a table's log.

    The next commits have their versions, and are not read where a checksum is another one's.

    Raises:
        OSError: one cannot be removed.
    """
    with commit_lock(table):
        log = list_log(table)
        for entry in log.entries:
            found = _CHECKSUM.fullmatch(entry.name)
            if found and (log.version is None or int(found[1]) > log.version):
                file = log.file(entry.name)
                file.filesystem.delete_file(file.path)


def set_aside_commit(broken: Broken) -> str:
    """Set the broken newest commit of a table aside; return where it lies.

    The checksums that go with it are removed: the next commit has its version.

    Raises:
        OSError: the file cannot be moved.
    """
    folder = place(broken.table)
    commit = folder.child(broken.file)
    kept = folder.child(_KEPT, commit.path.rpartition("/")[2])
    with commit_lock(broken.table):
        folder.filesystem.create_dir(folder.child(_KEPT).path, recursive=True)
        folder.filesystem.move(commit.path, kept.path)
    remove_checksums_behind(broken.table)
    return kept.path


def _in_log(entry: FileEntry) -> str:
    return f"_delta_log/{entry.name}"


def _why_no_commit(log: TableLog, entry: FileEntry) -> str | None:
    """Return why a file is no whole commit; None: it is one, or is too large to be read for it."""
    if entry.size_bytes > MOST_COMMIT_BYTES:
        return None
    try:
        log.actions(entry)
    except ValueError as error:
        return str(error)
    except OSError as error:
        return f"cannot be read: {error}"
    return None
