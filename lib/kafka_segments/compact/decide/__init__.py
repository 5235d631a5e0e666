"""Decide what is left over, what index files shrink to, and whose they are; no I/O, no clock."""
