"""The log directories of a node as a start of its broker finds them: read, and nothing decided."""
