"""Decide breaks in tiered logs; no I/O, no clock."""
