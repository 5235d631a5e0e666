"""Decide which index files go, and what the others shrink to; no I/O, no clock."""
