"""Divergence: copies of logs held against each other."""
