"""Retention: what a broker deletes at a moment, and why the rest stays."""
