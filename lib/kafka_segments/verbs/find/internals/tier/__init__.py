"""``internals tier``: remote segments by __remote_log_metadata, and what the store has."""
