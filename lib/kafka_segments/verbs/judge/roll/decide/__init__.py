"""Decide what rolls, and where other settings would have cut; no I/O, no clock."""
