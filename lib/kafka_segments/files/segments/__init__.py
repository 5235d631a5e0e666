"""Segments read and written anew, batch by batch. No Spark."""
