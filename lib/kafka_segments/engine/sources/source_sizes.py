"""Whether the segments of local sources are small; no session is needed to tell."""

from collections.abc import Sequence

from kafka_segments.engine.limits import SMALL_SOURCES
from kafka_segments.files.folders.kinds import SEGMENT
from kafka_segments.files.folders.walk import walk_folders
from kafka_segments.files.storage.links import links_into
from kafka_segments.files.storage.stores import store_of


def sources_are_small(sources: Sequence[str], *, follow_links: bool = False) -> bool:
    """Tell whether reading the segments costs less than compiling a query for them.

    The answer is no for sources in a store: listing them would take as long as it saves.
    """
    if not all(store_of(source).is_local for source in sources):
        return False
    walked = walk_folders(
        ((source, "") for source in sources),
        most_rows=SMALL_SOURCES.segments,
        follow_into=links_into(sources, follow=follow_links),
    )
    listed = (row for rows in walked.folders for row in rows)
    size_bytes = sum(row.size_bytes or 0 for row in listed if row.kind == SEGMENT)
    return not walked.left and size_bytes <= SMALL_SOURCES.bytes
