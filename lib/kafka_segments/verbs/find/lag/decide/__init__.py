"""Decide how far consumer groups and share groups are behind."""
