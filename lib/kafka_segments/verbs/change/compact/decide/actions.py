"""What a compaction does with an index file."""

from enum import StrEnum


class IndexAction(StrEnum):
    """What is done with a file, and why; all but the first two remove the file."""

    TRIM = "trim"
    """The zeros of preallocation are cut off, and repeated entries dropped."""
    THIN = "thin"
    """Entries are left out, as ``--index-interval-bytes`` asks."""
    ORPHAN = "orphan"
    """It is an index file without a segment."""
    DELETED = "deleted"
    """A broker had marked it for deletion."""
    CLEANED = "cleaned"
    """A compaction of the broker's did not end."""
    SWAP = "swap"
    """It replaces segments, but belongs to a compaction that did not end."""
