"""``recovery kit``: the files that a start after a crash would make, made before it."""
