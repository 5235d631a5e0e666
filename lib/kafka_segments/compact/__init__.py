"""Compact: index files trimmed, thinned and cleaned; tables optimized."""
