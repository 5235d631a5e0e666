"""Internals: what a cluster wrote about itself, read from its own topics, offline."""
