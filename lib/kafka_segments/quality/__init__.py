"""Expectations over the tables: what is measured, what must hold, Great Expectations to ask it."""
