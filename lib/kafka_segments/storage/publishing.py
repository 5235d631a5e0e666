"""Files that appear whole or not at all, and folders, on whatever file system."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyarrow import fs

from kafka_segments.storage.files import TEMPORARY_SUFFIX, Place
from kafka_segments.storage.stores import is_object_store, replaces_when_moved, uploads_whole

_TEMPORARY_PREFIX = "."


def make_folder(folder: Place) -> None:
    """Make a folder and those above it; object stores need none."""
    if not is_object_store(folder.filesystem):
        folder.filesystem.create_dir(folder.path, recursive=True)


def publish(target: Place, data: bytes) -> None:
    """Make a file appear whole: a temporary name beside it, then a rename.

    S3 and Google's store show an object only when its upload ends; there the name is final at
    once. Arrow shows an empty one on Azure before.
    """
    if uploads_whole(target.filesystem):
        _write(target, data)
    elif isinstance(target.filesystem, fs.LocalFileSystem):
        _publish_locally(target.path, data)
    else:
        _publish_by_move(target, data)


def _publish_by_move(target: Place, data: bytes) -> None:
    filesystem = target.filesystem
    temporary = Place(filesystem, _temporary_name(target.path))
    try:
        _write(temporary, data)
        is_there = filesystem.get_file_info(target.path).type == fs.FileType.File
        if is_there and not replaces_when_moved(filesystem):  # libhdfs renames onto nothing only
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


def _temporary_name(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f"{_TEMPORARY_PREFIX}{name}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}")


def _publish_locally(path: str, data: bytes) -> None:
    temporary = _temporary_name(path)
    try:
        with named_errors(path):
            with open(temporary, "xb") as stream:
                stream.write(data)
            os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextmanager
def named_errors(path: str) -> Iterator[None]:
    """Say which file the system would not write, where its error does not: the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, path) from None


def remove_folder(folder: Place) -> None:
    """Remove a folder of our own with all that is in it; none there is fine."""
    if folder.filesystem.get_file_info(folder.path).type == fs.FileType.Directory:
        folder.filesystem.delete_dir(folder.path)
