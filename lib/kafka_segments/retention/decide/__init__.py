"""Decide what goes and why the rest stays; no I/O, no clock."""
