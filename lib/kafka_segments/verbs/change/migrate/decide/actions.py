"""What a migration does with a segment, and the steps that it takes with a log."""

from enum import StrEnum

NOTED = ("folder", "root", "segment_count", "size_bytes")
"""What an event notes of its log besides its key: as the plan has it."""


class SegmentAction(StrEnum):
    """What is done with a segment: values of column ``action`` of ``migration_plans``."""

    KEEP = "keep"
    """Its files are taken over as they are."""
    INDEXES = "indexes"
    """Its index files are made anew."""
    CONVERT = "convert"
    """Its messages v0 and v1 become batches v2, and its index files are made anew."""
    CUT = "cut"
    """What recovery would cut off stays behind, and its index files are made anew."""
    REFUSE = "refuse"
    """A broker would not load it, or would cut it: its log is left alone."""


class Step(StrEnum):
    """A step of a migration: values of column ``step`` of ``migration_events``."""

    STAGE = "stage"
    VERIFY = "verify"
    APPLY = "apply"
    ROLLBACK = "rollback"
