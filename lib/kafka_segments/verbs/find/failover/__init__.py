"""Failover and restore: where to go on in another cluster, where to cut each log."""
