"""Decisions of ``disk``: what a file is, what was written lately, whether a folder may go."""
