"""Decide which copy a partition goes on with; no files, no clock."""
