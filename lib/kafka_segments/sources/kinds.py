"""Kinds of rows of a listing."""

SEGMENT, LOG, LOG_DIR, FOLDER = "segment", "log", "log_dir", "folder"
UNRECOGNIZED, LEFT_OVER, NOT_FOLLOWED, UNLISTED = (
    "unrecognized",
    "left_over",
    "not_followed",
    "unlisted",
)
NOT_TAKEN = (UNRECOGNIZED, LEFT_OVER, NOT_FOLLOWED, UNLISTED)
"""Rows of ``unrecognized_files``; what is left over is a broker's own, and no finding."""
UNSEEN = (NOT_FOLLOWED, UNLISTED)
"""What lies at such a place, or below it, may well be there."""
