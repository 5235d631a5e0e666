"""``disk``: what the bytes of a log directory are, when they go, and what may."""
