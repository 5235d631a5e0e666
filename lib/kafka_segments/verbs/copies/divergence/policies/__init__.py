"""Cleanup policies of the compared topics: as given, and as the cluster's metadata says."""
