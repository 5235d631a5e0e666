"""Decisions over rows of internal topics: state, changes, groups, tier, transactions."""
