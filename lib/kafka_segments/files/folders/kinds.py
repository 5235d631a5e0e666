"""Kinds of rows of a listing."""

SEGMENT, LOG, LOG_DIR, FOLDER = "segment", "log", "log_dir", "folder"
UNRECOGNIZED, LEFT_OVER, PASSED_OVER = "unrecognized", "left_over", "passed_over"
NOT_FOLLOWED, UNLISTED = "not_followed", "unlisted"
NOT_TAKEN = (UNRECOGNIZED, LEFT_OVER, PASSED_OVER, NOT_FOLLOWED, UNLISTED)
"""The kinds that are rows of ``unrecognized_files``."""
HARMLESS = (LEFT_OVER, PASSED_OVER)
"""Those of them that are no findings: a broker resolves them at its start, or passes them over."""
UNSEEN = (NOT_FOLLOWED, UNLISTED)
"""Nobody looked at these places or below them: what is known there has not vanished."""
WITH_NOTES = (LOG_DIR, LOG)
"""The kinds of rows that say what brokers note; their reason is what could not be read of that."""
NO_SEGMENT = "no segment lies in it"
"""How the reason of an unrecognized folder begins whose log lost all its segments."""
