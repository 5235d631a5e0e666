"""``recovery apply`` and ``rollback``: a kit put in place, and taken back."""
