"""Decisions as DataFrame transforms: no I/O, no clock."""
