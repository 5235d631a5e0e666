"""``migrate plan``: each segment looked at, and what will be done with it."""
