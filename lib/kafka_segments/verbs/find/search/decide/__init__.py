"""Decide where to look, and what the answer is; no files, no tables, no clock."""
