"""Verb ``backup``: whether a backup holds what its cluster held."""
