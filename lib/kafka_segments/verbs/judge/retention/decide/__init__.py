"""Decide what goes, and why the rest stays; no files, no tables, no clock."""
