"""``recovery forecast``: what a start does, loses and costs."""
