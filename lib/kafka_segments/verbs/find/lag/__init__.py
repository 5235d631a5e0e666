"""Lag: how far behind consumer groups are, in offsets and in time."""
