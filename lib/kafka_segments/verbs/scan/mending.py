"""What a build does first: tables of its own whose newest commit is broken are made whole."""

from collections.abc import Iterator
from typing import TypeGuard

from kafka_segments.errors import BrokenTableError
from kafka_segments.files.delta.health import (
    OF_BUILD,
    Broken,
    broken_log,
    remove_checksums_behind,
    set_aside_commit,
)
from kafka_segments.files.delta.notes import OF_SOURCES, forget_spoilt, forget_version
from kafka_segments.files.delta.table_versions import mark_taken_back
from kafka_segments.files.storage.folder_lock import warehouse_lock
from kafka_segments.files.storage.read_again import mark_read_again
from kafka_segments.files.storage.uris import join_uri

READS_ALL_AGAIN = "each source is read again as a whole by its next build: these by this one"


def mend_tables(warehouse: str) -> dict[str, str]:
    """Set broken newest commits of a build's tables aside.

    Return the marks that this leaves, and in words what was done for each.

    What such a commit had held, or those that were taken away from the end of a log, is not known,
    and may have been of any source: a mark has each of them read again by its next build. It is
    there before anything else is done. Where somebody left other rows, by RESTORE say, is one, too.

    Raises:
        BrokenTableError: a person has to mend a table; also where the build would not read it.
    """
    broken = [found for found in _tables_of(warehouse) if found is not None]
    for found in broken:
        if not _can_be_mended(found):
            raise BrokenTableError(found.text)
    told = {}
    if broken:
        with warehouse_lock(warehouse, alone=True):
            told = dict(map(_mend, filter(_can_be_mended, _tables_of(warehouse))))
    return told | mark_taken_back(warehouse, OF_SOURCES)


def _tables_of(warehouse: str) -> Iterator[Broken | None]:
    return (broken_log(join_uri(warehouse, name)) for name in OF_BUILD)


def _can_be_mended(found: Broken | None) -> TypeGuard[Broken]:
    return found is not None and (found.is_newest or found.is_cut)


def _mend(found: Broken) -> tuple[str, str]:
    warehouse = found.table.rstrip("/").rpartition("/")[0]
    mark = str(mark_read_again(warehouse, found.text))
    if found.is_newest:
        what = f"its newest commit {found.why}; it is kept as {set_aside_commit(found)}"
    else:
        what = f"its log {found.why}"
        remove_checksums_behind(found.table)
    forget_version(found.table)
    forget_spoilt(warehouse)
    return mark, f"table {found.name}: {what}"
