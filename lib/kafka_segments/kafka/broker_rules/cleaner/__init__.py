"""What the log cleaner does: where a pass begins, what it keeps, what comes of it."""
