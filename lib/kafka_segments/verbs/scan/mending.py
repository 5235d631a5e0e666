"""What a build does first: tables of its own whose newest commit is broken are made whole."""

from kafka_segments.files.storage.delta_health import OF_BUILD, broken_log, set_aside_commit
from kafka_segments.files.storage.folder_lock import warehouse_lock
from kafka_segments.files.storage.read_again import mark_read_again
from kafka_segments.files.storage.uris import join_uri

READS_ALL_AGAIN = (
    "a broken commit of this warehouse was set aside, and may have held rows of these sources: all"
    " of their segments are read again"
)


def mend_tables(warehouse: str) -> list[str]:
    """Set broken newest commits of a build's tables aside; return in words what was done to each.

    What such a commit had held is not known, and may have been of any source: a mark has each of
    them read again by its next build. It is there before the commit is moved.
    """
    broken = [found for name in OF_BUILD if (found := broken_log(join_uri(warehouse, name)))]
    if not any(found.is_newest for found in broken):
        return []
    told = []
    with warehouse_lock(warehouse, alone=True):
        for name in OF_BUILD:
            found = broken_log(join_uri(warehouse, name))
            if found is not None and found.is_newest:
                mark_read_again(warehouse, found.text)
                kept = set_aside_commit(found)
                told.append(
                    f"table {name}: its newest commit {found.why}; it is kept as {kept}, and this"
                    " build reads all segments of its sources again, as the next build of each"
                    " other source does"
                )
    return told
