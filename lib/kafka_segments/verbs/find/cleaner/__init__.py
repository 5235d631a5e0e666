"""``cleaner``: what the log cleaner makes of each compacted log, and why it does not run."""
