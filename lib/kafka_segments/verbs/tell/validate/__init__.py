"""Validate: what must hold of the tables, asked through Great Expectations."""
