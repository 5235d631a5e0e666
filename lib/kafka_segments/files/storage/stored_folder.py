"""List a folder of a store through pyarrow.fs."""

from typing import TYPE_CHECKING

from kafka_segments.files.storage.local_file import Kind
from kafka_segments.files.storage.local_folder import NO_FILE, FileEntry

if TYPE_CHECKING:
    from pyarrow import fs


def list_stored_folder(
    filesystem: "fs.FileSystem", folder: str, *, is_deep: bool
) -> list[FileEntry]:
    """Return the entries of a folder, in no order.

    ``is_deep``: the store lists only what lies below in a folder, not the folder itself.

    Raises:
        OSError: the folder does not exist, or the store refused.
    """
    from pyarrow import fs  # noqa: PLC0415  disks need none of Arrow

    infos = filesystem.get_file_info(fs.FileSelector(folder, recursive=is_deep))
    return _nearest(folder, infos) if is_deep else [_entry(folder, info) for info in infos]


def _entry(folder: str, info: "fs.FileInfo") -> FileEntry:
    return FileEntry(
        # What is itself: two slashes in an object's key.
        "" if info.path.rstrip("/") == folder else info.base_name,
        info.type.name == Kind.FOLDER.value,
        info.size or 0,
        info.mtime_ns or 0,
        NO_FILE if info.type.name == Kind.OTHER.value else None,
    )


def _nearest(folder: str, infos: "list[fs.FileInfo]") -> list[FileEntry]:
    """Return the entries of a folder, from a listing of all that lies below it."""
    files: list[FileEntry] = []
    folders: set[str] = set()
    for info in infos:
        name, _, below = info.path[len(folder) + 1 :].partition("/")
        if below or info.type.name == Kind.FOLDER.value:
            folders.add(name)
        else:
            files.append(_entry(folder, info))
    return [*files, *(FileEntry(name, True, 0, 0) for name in folders)]
