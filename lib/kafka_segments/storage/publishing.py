"""Files that appear whole or not at all, and folders, on whatever file system."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyarrow import fs

from kafka_segments.storage.durable_files import temporary_name, write_durably
from kafka_segments.storage.files import Place


def make_folder(folder: Place) -> None:
    """Make a folder and those above it; stores without folders need none."""
    if folder.store.has_folders:
        folder.filesystem.create_dir(folder.path, recursive=True)


def publish(target: Place, data: bytes) -> None:
    """Write a file so that it appears whole: a temporary name beside it, then a rename.

    Where a store shows an object only when its upload ends, the name is final at once. On a disk
    nothing waits for the bytes: index files are many, and can be made anew.

    Raises:
        OSError: the store refused; nothing is left but the file that was there.
    """
    if target.store.uploads_whole:
        _write(target, data)
    elif target.store.is_local:
        with named_errors(target.path):
            write_durably(Path(target.path), data, is_synced=False)
    else:
        _publish_by_move(target, data)


def _publish_by_move(target: Place, data: bytes) -> None:
    filesystem = target.filesystem
    temporary = Place(filesystem, temporary_name(target.path))
    try:
        _write(temporary, data)
        is_there = filesystem.get_file_info(target.path).type == fs.FileType.File
        if is_there and not target.store.replaces_when_moved:
            filesystem.delete_file(target.path)
        try:
            filesystem.move(temporary.path, target.path)
        except NotImplementedError:  # an account of Azure without a hierarchical namespace
            filesystem.copy_file(temporary.path, target.path)
            filesystem.delete_file(temporary.path)
    except BaseException:
        with suppress(OSError):
            filesystem.delete_file(temporary.path)
        raise


def _write(target: Place, data: bytes) -> None:
    with target.filesystem.open_output_stream(target.path) as stream:
        stream.write(data)


@contextmanager
def named_errors(path: str) -> Iterator[None]:
    """Name the file in an error that does not, as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, path) from None


def remove_folder(folder: Place) -> None:
    """Remove a folder of our own with all that is in it, if it exists."""
    if folder.filesystem.get_file_info(folder.path).type == fs.FileType.Directory:
        folder.filesystem.delete_dir(folder.path)
