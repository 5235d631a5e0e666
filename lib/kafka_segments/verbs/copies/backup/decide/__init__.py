"""Decide up to which offset a backup is complete, and what it misses."""
