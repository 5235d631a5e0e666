"""Audit: the index files found beside segments, held against the ones that their logs give."""
