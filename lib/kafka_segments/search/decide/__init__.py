"""Decide where to look, and what the answer is; no I/O, no clock."""
