"""Kinds of rows of a listing."""

SEGMENT, LOG, LOG_DIR, FOLDER = "segment", "log", "log_dir", "folder"
UNRECOGNIZED, LEFT_OVER, NOT_FOLLOWED, UNLISTED = (
    "unrecognized",
    "left_over",
    "not_followed",
    "unlisted",
)
NOT_TAKEN = (UNRECOGNIZED, LEFT_OVER, NOT_FOLLOWED, UNLISTED)
"""The kinds that are rows of ``unrecognized_files``; those of ``LEFT_OVER`` are no findings."""
UNSEEN = (NOT_FOLLOWED, UNLISTED)
"""Nobody looked at these places or below them: what is known there has not vanished."""
