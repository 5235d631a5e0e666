"""Build: segments read, index files written, tables merged."""
