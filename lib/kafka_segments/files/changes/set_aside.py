"""Move segments out of a log's folder and back; a crash at any step loses nothing.

1. A manifest with the size, mtime and SHA-256 of each file lies in the set-aside folder before the
   first file moves. It must name the files that were planned, and no others.
2. The oldest segment goes first and comes back last, so the log never has a hole.
3. The ``.log`` of a segment goes last and comes back first: a broker that starts in between finds
   the whole segment, a ``.log`` whose indexes it rebuilds, or nothing of it.
4. Each step can be done again.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.backups import is_there, status_of
from kafka_segments.files.changes.manifests import (
    Count,
    Int64,
    Manifest,
    Name,
    Part,
    Sha256,
    read_manifest,
    write_manifest,
)
from kafka_segments.files.changes.plain_files import check_folder
from kafka_segments.files.storage.durable_files import (
    TEMPORARY,
    move_durably,
    remove_temporaries,
    sha256_of,
)
from kafka_segments.files.storage.local_folder import mtime_ns_of
from kafka_segments.kafka.text.moments import mtime_text
from kafka_segments.kafka.text.names import INDEX_SUFFIXES, LOG_SUFFIX, SNAPSHOT_SUFFIX, file_name

MANIFEST = "manifest.json"
SUFFIXES = (*INDEX_SUFFIXES, SNAPSHOT_SUFFIX, LOG_SUFFIX)  # in the order they go


class SegmentFile(NamedTuple):
    """A file of a segment as it was when it was planned to go."""

    base_offset: int
    name: str
    size_bytes: int
    mtime_ns: int


class AsideFile(Part):
    """A file in a set-aside folder, as it was when it was planned to go."""

    base_offset: Count
    name: Name
    size_bytes: Count
    mtime_ns: Int64
    sha256: Sha256

    @property
    def planned(self) -> SegmentFile:
        """Return the file as a plan has it."""
        return SegmentFile(self.base_offset, self.name, self.size_bytes, self.mtime_ns)


class AsideManifest(Manifest):
    """The files of a set-aside folder, and the folder of the log that they belong to."""

    remedy: ClassVar[str] = "nothing is moved: the files lie beside it, move them back by hand"
    reads_unsigned: ClassVar[bool] = True

    folder: str
    files: tuple[AsideFile, ...]


def files_of_segments(folder: Path, base_offsets: Sequence[int]) -> list[SegmentFile]:
    """List the files of segments that a broker deletes with them, in the order in which they go.

    Links are among them, also those that lead nowhere: a broker removes the link itself.

    Raises:
        OSError: the folder cannot be read.
    """
    found = []
    for base_offset in sorted(base_offsets):
        for suffix in SUFFIXES:
            name = file_name(base_offset, suffix)
            try:
                stat = status_of(folder / name)
            except FileNotFoundError:
                continue
            found.append(SegmentFile(base_offset, name, stat.st_size, mtime_ns_of(stat)))
    return found


def is_set_aside(folder: Path, aside: Path, planned: Sequence[SegmentFile]) -> bool:
    """Tell whether an earlier run has moved all the planned files."""
    return (aside / MANIFEST).exists() and not any(
        is_there(folder / file.name) or not is_there(aside / file.name) for file in planned
    )


def check_planned(
    folder: Path,
    aside: Path,
    planned: Sequence[SegmentFile],
    digests: Mapping[str, str] | None = None,
) -> None:
    """Check that a log is as it was planned, or as an earlier run left it.

    ``digests``: the SHA-256 of files by name, as planned; files without one are not compared by it.

    Raises:
        SetAsideError: a file differs, is gone or was not planned, or an older segment exists. Or
            the manifest of an earlier run cannot be used.
    """
    if _is_begun(folder, aside, planned):
        _checked_files(folder, aside, planned, source=folder)
        return
    _check_listing(folder, planned)
    for name in digests or ():
        _check_digest(folder / name, sha256_of(folder / name), digests)


def _check_listing(folder: Path, planned: Sequence[SegmentFile]) -> None:
    bases = sorted({file.base_offset for file in planned})
    if files_of_segments(folder, bases) != list(planned):
        there = {file.name: file for file in files_of_segments(folder, bases)}
        for file in planned:
            found = there.pop(file.name, None)
            if found != file:
                raise SetAsideError(folder, _difference(file, found))
        raise SetAsideError(folder, f"{min(there)} was not there when it was planned: plan again")
    older = [name for name in _bases(folder) if name < bases[-1] and name not in bases]
    if older:
        raise SetAsideError(
            folder, f"segment {older[0]} is older than {bases[-1]} and not in the plan: plan again"
        )
    if not any(base > bases[-1] for base in _bases(folder)):
        raise SetAsideError(folder, f"segment {bases[-1]} is the last one: plan again")


def _check_digest(path: Path, found: str, planned: Mapping[str, str] | None) -> None:
    expected = (planned or {}).get(path.name, found)
    if found != expected:
        raise SetAsideError(
            path,
            f"its sha256 is {found}, {expected} when it was planned; size and mtime are the same:"
            " plan again",
        )


def set_aside(
    folder: Path,
    aside: Path,
    planned: Sequence[SegmentFile],
    planned_digests: Mapping[str, str] | None = None,
) -> None:
    """Move the files of segments into ``aside``; after a crash, the rest of them.

    ``planned_digests``: see ``check_planned``.

    Raises:
        SetAsideError: a file is not as planned.
        OSError: the file system refused a step; run it again.
    """
    if not _is_begun(folder, aside, planned):
        _check_listing(folder, planned)
        digests = {file.name: sha256_of(folder / file.name) for file in planned}
        for name, digest in digests.items():
            _check_digest(folder / name, digest, planned_digests)
        _write_manifest(folder, aside, planned, digests)
    remove_temporaries(aside)
    for file in _checked_files(folder, aside, planned, source=folder):
        if is_there(folder / file.name):
            move_durably(folder / file.name, aside / file.name)


def _is_begun(folder: Path, aside: Path, planned: Sequence[SegmentFile]) -> bool:
    """Tell whether an earlier run has begun to move the planned files.

    Raises:
        SetAsideError: a folder is a link, or the plan names files that no segment has.
    """
    check_folder(folder)
    for file in planned:
        if file.name not in [file_name(file.base_offset, suffix) for suffix in SUFFIXES]:
            raise SetAsideError(folder, f"{file.name!a} is planned, no segment's file: plan again")
    for path in (aside.parent, aside):
        if is_there(path):
            check_folder(path)
    return is_there(aside / MANIFEST)


def _checked_files(
    folder: Path, aside: Path, planned: Sequence[SegmentFile], *, source: Path
) -> list[AsideFile]:
    """Return the files of a manifest, each of which lies in one of the two folders as it says.

    ``source`` is the one from which they move: of a file in both, the one there is looked at.

    Raises:
        SetAsideError: they are not those that were planned, one has changed, or is gone.
    """
    manifest = read_manifest(aside / MANIFEST, AsideManifest)
    if manifest.folder != str(folder):
        raise SetAsideError(
            aside / MANIFEST,
            f"folder: found {manifest.folder!a}, {folder} planned; {manifest.remedy}",
        )
    named = {file.planned for file in manifest.files}
    if named != set(planned) or len(manifest.files) != len(planned):
        raise SetAsideError(
            aside / MANIFEST,
            f"files: {len(named & set(planned))} of the {len(planned)} that were planned, and"
            f" {len(named - set(planned))} others; {manifest.remedy}",
        )
    _check_no_others(aside, (file.name for file in manifest.files))
    for file in manifest.files:
        paths = [source / file.name, aside / file.name, folder / file.name]
        _check(next(filter(is_there, paths), paths[-1]), file)
    return list(manifest.files)


def _check_no_others(aside: Path, names: Iterable[str]) -> None:
    named = {*names, MANIFEST}
    for entry in sorted(aside.iterdir()):
        if entry.name not in named and not entry.name.endswith(TEMPORARY):
            raise SetAsideError(
                entry, f"{MANIFEST} does not name it; {AsideManifest.remedy}, or this file away"
            )


def check_back(folder: Path, aside: Path, planned: Sequence[SegmentFile]) -> list[AsideFile]:
    """Check that the planned files of a set-aside folder can all come back; return them.

    Raises:
        SetAsideError: a file is not as the manifest says, or another one took its place.
    """
    if not _is_begun(folder, aside, planned):
        _check_no_others(aside, ())
        return []
    files = _checked_files(folder, aside, planned, source=aside)
    for file in files:
        source, target = aside / file.name, folder / file.name
        if is_there(source) and is_there(target) and not _is_copy(target, source):
            raise SetAsideError(
                target, f"another file took its place: move it away, {source} belongs there"
            )
    return files


def bring_back(folder: Path, aside: Path, planned: Sequence[SegmentFile]) -> int:
    """Move the files of a set-aside folder back, each as it was; return their number.

    A folder without a manifest is removed: nothing was moved yet, or everything is back.

    Raises:
        SetAsideError: see ``check_back``; nothing is moved.
        OSError: the file system refused a step; run it again.
    """
    files = check_back(folder, aside, planned)
    for file in reversed(files):
        if is_there(aside / file.name):
            move_durably(aside / file.name, folder / file.name)
    (aside / MANIFEST).unlink(missing_ok=True)
    remove_temporaries(aside)
    remove_temporaries(folder)
    aside.rmdir()
    return len(files)


def _difference(planned: SegmentFile, found: SegmentFile | None) -> str:
    if found is None:
        return f"{planned.name} is gone since it was planned: plan again"
    return (
        f"{planned.name} has {found.size_bytes} bytes and mtime {mtime_text(found.mtime_ns)},"
        f" {planned.size_bytes} and {mtime_text(planned.mtime_ns)} when it was planned: plan again"
    )


def _bases(folder: Path) -> list[int]:
    stems = (entry.name.partition(".") for entry in folder.iterdir())
    return sorted(int(stem) for stem, _, rest in stems if rest == "log" and stem.isdecimal())


def _write_manifest(
    folder: Path, aside: Path, planned: Sequence[SegmentFile], digests: dict[str, str]
) -> None:
    aside.mkdir(parents=True, exist_ok=True)
    files = (AsideFile(**file._asdict(), sha256=digests[file.name]) for file in planned)
    write_manifest(aside / MANIFEST, AsideManifest(folder=str(folder), files=tuple(files)))


def _check(path: Path, file: AsideFile) -> None:
    """Check that a file is as the manifest says; of a link, that it is the same link."""
    try:
        stat = status_of(path)
    except FileNotFoundError:
        raise SetAsideError(
            path, "it is in neither of the two folders: restore it from another replica"
        ) from None
    is_as_noted = (stat.st_size, stat.st_mtime_ns) == (file.size_bytes, file.mtime_ns)
    if not is_as_noted and not path.is_symlink():
        raise SetAsideError(
            path,
            f"it has {stat.st_size} bytes and mtime {mtime_text(stat.st_mtime_ns)},"
            f" {file.size_bytes} and {mtime_text(file.mtime_ns)} in the manifest: it has changed"
            " since and is not moved",
        )
    found = sha256_of(path)
    if found != file.sha256:
        raise SetAsideError(
            path,
            f"its sha256 is not the one of the manifest, but {found} instead of {file.sha256}: it"
            " has changed since and is not moved",
        )


def _is_copy(target: Path, source: Path) -> bool:
    return target.lstat().st_size == source.lstat().st_size and (
        sha256_of(target) == sha256_of(source)
    )
