"""Compact: trim, thin and clean index files, and optimize tables."""
