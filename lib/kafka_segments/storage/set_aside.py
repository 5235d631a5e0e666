"""Move segments out of a log's folder and back, so that a crash at any step loses nothing.

A manifest (size, mtime, sha256 of each file) stands in the set-aside folder before the first
file moves. Segments go oldest first and come back youngest first, so the log never has a hole.
Of a segment the ``.log`` goes last and comes back first: a broker started in between finds a
whole segment, rebuilds its indexes, or finds none. Each step can be done again.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kafka_segments.errors import SetAsideError
from kafka_segments.wire.names import INDEX_SUFFIXES, LOG_SUFFIX, SNAPSHOT_SUFFIX

MANIFEST = "manifest.json"
SUFFIXES = (*INDEX_SUFFIXES, SNAPSHOT_SUFFIX, LOG_SUFFIX)  # in the order they go
_TEMPORARY = ".kafka-segments-tmp"


class SegmentFile(NamedTuple):
    """A file of a segment as it was when it was planned to go."""

    base_offset: int
    name: str
    size_bytes: int
    mtime_ns: int


def files_of_segments(folder: Path, base_offsets: Sequence[int]) -> list[SegmentFile]:
    """List the files of segments that a broker deletes with them, in the order they go.

    Raises:
        OSError: the folder cannot be read.
    """
    found = []
    for base_offset in sorted(base_offsets):
        for suffix in SUFFIXES:
            name = f"{base_offset:020d}{suffix}"
            try:
                stat = (folder / name).stat()
            except FileNotFoundError:
                continue
            found.append(SegmentFile(base_offset, name, stat.st_size, stat.st_mtime_ns))
    return found


@contextmanager
def held_lock(lock: Path) -> Iterator[None]:
    """Hold a log directory's lock file, so that no broker starts on it; none there: a copy.

    Raises:
        SetAsideError: a running broker holds it.
    """
    try:
        descriptor = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        yield
        return
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SetAsideError(lock.parent, "its .lock is held: stop its broker first") from None
        yield
    finally:
        os.close(descriptor)


def is_set_aside(folder: Path, aside: Path, planned: Sequence[SegmentFile]) -> bool:
    """Tell whether an earlier run has moved all that is planned."""
    return (aside / MANIFEST).exists() and not any(
        (folder / file.name).exists() or not (aside / file.name).exists() for file in planned
    )


def check_planned(
    folder: Path,
    aside: Path,
    planned: Sequence[SegmentFile],
    digests: Mapping[str, str] | None = None,
) -> None:
    """Check that a log is as it was planned, or as an earlier run left it.

    ``digests``: the sha256 of files by name, as planned; those of other files are not held.

    Raises:
        SetAsideError: a file that differs, is gone or is there besides, an older segment.
    """
    if (aside / MANIFEST).exists():
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
    """Move the files of segments into ``aside``; again after a crash, the rest of them.

    ``planned_digests``: as in ``check_planned``.

    Raises:
        SetAsideError: a file that is not as planned.
        OSError: a step that the file system refused; run it again.
    """
    if not (aside / MANIFEST).exists():
        _check_listing(folder, planned)
        digests = {file.name: sha256_of(folder / file.name) for file in planned}
        for name, digest in digests.items():
            _check_digest(folder / name, digest, planned_digests)
        _write_manifest(folder, aside, planned, digests)
    for file, digest in read_manifest(aside):
        if not (folder / file.name).exists():
            _check(aside / file.name, file, digest)
            continue
        _check(folder / file.name, file, digest)
        _move(folder / file.name, aside / file.name)


def bring_back(folder: Path, aside: Path) -> int:
    """Move the files of a set-aside folder back, each as it was; gives their number.

    Without a manifest nothing has been moved, or all is back: the folder goes.

    Raises:
        SetAsideError: a file that is not as the manifest says, or another in its place.
        OSError: a step that the file system refused; run it again.
    """
    files = read_manifest(aside) if (aside / MANIFEST).exists() else []
    for file, digest in reversed(files):
        source, target = aside / file.name, folder / file.name
        if source.exists():
            _check(source, file, digest)
            if target.exists() and not _is_copy(target, source):
                raise SetAsideError(
                    target, f"another file took its place: move it away, {source} belongs there"
                )
            _move(source, target)
        else:
            _check(target, file, digest)
    (aside / MANIFEST).unlink(missing_ok=True)
    for leftover in (*aside.glob(f"*{_TEMPORARY}"), *folder.glob(f"*{_TEMPORARY}")):
        leftover.unlink()
    aside.rmdir()
    return len(files)


def read_manifest(aside: Path) -> list[tuple[SegmentFile, str]]:
    """Read the files of a set-aside folder, each with its sha256.

    Raises:
        SetAsideError: no manifest, or one that is none.
    """
    try:
        manifest = json.loads((aside / MANIFEST).read_text("utf-8"))
        return [
            (
                SegmentFile(row["base_offset"], row["name"], row["size_bytes"], row["mtime_ns"]),
                row["sha256"],
            )
            for row in manifest["files"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SetAsideError(aside / MANIFEST, f"no manifest: {error}") from None


def _difference(planned: SegmentFile, found: SegmentFile | None) -> str:
    if found is None:
        return f"{planned.name} is gone since it was planned: plan again"
    return (
        f"{planned.name} has {found.size_bytes} bytes and mtime {found.mtime_ns} ns,"
        f" {planned.size_bytes} and {planned.mtime_ns} when it was planned: plan again"
    )


def _bases(folder: Path) -> list[int]:
    stems = (entry.name.partition(".") for entry in folder.iterdir())
    return sorted(int(stem) for stem, _, rest in stems if rest == "log" and stem.isdecimal())


def _write_manifest(
    folder: Path, aside: Path, planned: Sequence[SegmentFile], digests: dict[str, str]
) -> None:
    aside.mkdir(parents=True, exist_ok=True)
    rows = [{**file._asdict(), "sha256": digests[file.name]} for file in planned]
    temporary = aside / (MANIFEST + _TEMPORARY)
    with temporary.open("w", encoding="utf-8") as stream:
        json.dump({"folder": str(folder), "files": rows}, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, aside / MANIFEST)
    sync_folder(aside)


def _check(path: Path, file: SegmentFile, digest: str) -> None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        raise SetAsideError(path, "it is in neither of the two folders") from None
    if (stat.st_size, stat.st_mtime_ns) != (file.size_bytes, file.mtime_ns):
        raise SetAsideError(path, "its size or mtime is not the one of the manifest")
    if sha256_of(path) != digest:
        raise SetAsideError(path, "its sha256 is not the one of the manifest")


def _is_copy(target: Path, source: Path) -> bool:
    return target.stat().st_size == source.stat().st_size and sha256_of(target) == sha256_of(source)


def _move(source: Path, target: Path) -> None:
    """Rename, or copy whole and then remove where the two lie on different file systems."""
    try:
        os.replace(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        temporary = target.with_name(target.name + _TEMPORARY)
        shutil.copy2(source, temporary)
        stat = source.stat()
        os.chown(temporary, stat.st_uid, stat.st_gid)
        os.utime(temporary, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        if sha256_of(temporary) != sha256_of(source):
            raise SetAsideError(temporary, "the copy differs from its source") from None
        os.replace(temporary, target)
        sync_folder(target.parent)
        source.unlink()
    sync_folder(target.parent)
    sync_folder(source.parent)


def sha256_of(path: Path) -> str:
    """Give the sha256 of a file's bytes, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
