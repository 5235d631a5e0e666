"""``internals groups``: consumer and share groups by their own topics' records."""
