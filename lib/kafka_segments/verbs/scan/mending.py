"""What a build does first: tables of its own whose newest commit is broken are made whole."""

from kafka_segments.files.storage.delta_health import OF_BUILD, broken_log, set_aside_commit
from kafka_segments.files.storage.folder_lock import warehouse_lock
from kafka_segments.files.storage.uris import join_uri


def mend_tables(warehouse: str) -> list[str]:
    """Set broken newest commits of a build's tables aside; return in words what was done to each.

    What such a commit had held is not known, and may have been of other sources: each of them has
    to be read again.
    """
    broken = [found for name in OF_BUILD if (found := broken_log(join_uri(warehouse, name)))]
    if not any(found.is_newest for found in broken):
        return []
    told = []
    with warehouse_lock(warehouse, alone=True):
        for name in OF_BUILD:
            found = broken_log(join_uri(warehouse, name))
            if found is not None and found.is_newest:
                kept = set_aside_commit(found)
                told.append(
                    f"table {name}: its newest commit {found.why}; it is kept as {kept}, and this"
                    " build reads all segments of its sources again; run `build --full` for the"
                    " warehouse's other sources, if there are any"
                )
    return told
