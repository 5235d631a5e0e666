"""What is decided of a segment: the words of column ``decision``."""

from enum import StrEnum


class Decision(StrEnum):
    """A decision of retention (delete or keep), or of rolling (all but delete)."""

    DELETE = "delete"
    KEEP = "keep"
    ROLL = "roll"
    JITTER = "jitter"
    """Whether it rolls depends on the jitter that the broker drew."""
    UNKNOWN = "unknown"
    """A broker does not load the segment, or other rules hold for its log."""
