"""Verbs that tell what the tables hold: report, validate, sql."""
