"""Verbs that change files: recovery, migrate, compact."""
