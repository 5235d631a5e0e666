"""Verbs that decide by tables and files: audit, retention, roll."""
