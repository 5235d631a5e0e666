"""Report: one HTML page about a warehouse."""
