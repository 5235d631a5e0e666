"""Forensics: what the timestamps of batches tell of their producers."""
