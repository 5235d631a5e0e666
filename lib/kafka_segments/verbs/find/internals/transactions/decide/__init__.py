"""Judge open transactions by the coordinator's log; no files, no clock."""
