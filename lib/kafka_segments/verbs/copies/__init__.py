"""Verbs that hold copies against each other."""
