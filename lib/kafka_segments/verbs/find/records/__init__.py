"""``records``: which records a consumer cannot read, and where a record is."""
