"""How much a warehouse holds, by the sizes of its files, before there is a session."""

from kafka_segments.engine.limits import (
    LITTLE_WAREHOUSE_BYTES,
    MANY_QUESTIONS_BYTES,
    MUCH_WAREHOUSE_BYTES,
)
from kafka_segments.errors import SourceError
from kafka_segments.files.storage.files import list_folder, place
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.files.storage.stores import store_of
from kafka_segments.files.storage.uris import join_uri


def holds_much(warehouse: str) -> bool:
    """Tell whether the tables are so large that work on them takes minutes.

    The files of older versions count too. Of a warehouse in a store it is not known: to list it
    takes as long as what is saved.
    """
    size_bytes = _size_bytes(warehouse)
    return size_bytes is not None and size_bytes > MUCH_WAREHOUSE_BYTES


def holds_little(warehouse: str) -> bool:
    """Tell whether the tables are so small that to compile a query costs more than to run it."""
    size_bytes = _size_bytes(warehouse)
    return size_bytes is not None and size_bytes <= LITTLE_WAREHOUSE_BYTES


def asks_much(questions: str) -> bool:
    """Tell whether a file of questions, a line each, is so large that to answer takes minutes.

    The answer is no for a file in a store, whose size is not asked, and for one that is not there.
    """
    if not store_of(questions).is_local:
        return False
    file = place(questions)
    size_bytes: int | None = file.filesystem.get_file_info(file.path).size
    return size_bytes is not None and size_bytes > MANY_QUESTIONS_BYTES


def _size_bytes(warehouse: str) -> int | None:
    """Return the bytes of all tables' files; None for a warehouse in a store."""
    if not store_of(warehouse).is_local:
        return None
    tables = (entry.name for entry in _entries(warehouse) if _is_visible_folder(entry))
    files = (entry for table in tables for entry in _entries(join_uri(warehouse, table)))
    return sum(entry.size_bytes for entry in files if not entry.is_folder)


def _is_visible_folder(entry: FileEntry) -> bool:
    return entry.is_folder and not entry.name.startswith(("_", "."))


def _entries(folder: str) -> list[FileEntry]:
    try:
        return list_folder(place(folder))
    except SourceError:
        return []
