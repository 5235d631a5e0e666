"""Match records of a mirror with its source's; no files, no clock."""
