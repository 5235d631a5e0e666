"""Decide what is done with each segment, and what stands in the way; no I/O, no clock."""
