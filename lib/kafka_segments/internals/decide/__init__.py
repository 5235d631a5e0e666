"""Decide over rows of internal topics: their state, what changed, groups, tier, transactions."""
