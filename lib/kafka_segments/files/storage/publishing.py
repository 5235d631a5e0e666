"""Publish files that appear whole or not at all, and make and remove folders, on any store."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree

from kafka_segments.files.storage.durable_files import (
    remove_older_temporaries,
    temporary_name,
    write_durably,
)
from kafka_segments.files.storage.files import Place
from kafka_segments.files.storage.local_file import Kind


def make_folder(folder: Place) -> None:
    """Make a folder and those above it, where the store has folders."""
    if folder.store.is_local:
        Path(folder.path).mkdir(parents=True, exist_ok=True)
    elif folder.store.has_folders:
        folder.filesystem.create_dir(folder.path, recursive=True)


def publish(target: Place, data: bytes) -> None:
    """Write a file that appears whole: a temporary name beside it, then a rename.

    A store that shows an object only when its upload ends gets the final name from the
    start. On a local disk the file is not synced: index files are many, and can be made anew.

    Raises:
        OSError: the store refused; only the file that was there before is left.
    """
    store = target.store
    if store.uploads_whole:
        _write(target, data)
    elif store.is_local:
        try:
            write_durably(target.path, data, is_synced=False)
        except OSError as error:
            raise _named(error, target.path) from None
    else:
        _publish_by_move(target, data)


def publish_page(target: Place, data: bytes) -> None:
    """Publish a page that a person named; what killed runs left of it on a local disk goes.

    Raises:
        OSError: see ``publish``.
    """
    publish(target, data)
    if target.store.is_local:
        remove_older_temporaries(Path(target.path))


def _publish_by_move(target: Place, data: bytes) -> None:
    filesystem = target.filesystem
    temporary = Place(filesystem, temporary_name(target.path))
    try:
        _write(temporary, data)
        is_there = target.kind() is Kind.FILE
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
    """Add the path of a file to an OSError that has none, as that of a full disk."""
    try:
        yield
    except OSError as error:
        raise _named(error, path) from None


def _named(error: OSError, path: str) -> OSError:
    if error.errno is None or error.filename is not None:
        return error
    return OSError(error.errno, error.strerror, path)


def remove_folder(folder: Place) -> None:
    """Remove a folder of our own with all that is in it, if it exists."""
    if folder.kind() is not Kind.FOLDER:
        return
    if folder.store.is_local:
        rmtree(folder.path)
    else:
        folder.filesystem.delete_dir(folder.path)
