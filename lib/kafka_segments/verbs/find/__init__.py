"""Verbs that find records, positions and states."""
