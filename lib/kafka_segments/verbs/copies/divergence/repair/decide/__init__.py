"""Decide from which copy each part of a repaired log comes; no files, no clock."""
