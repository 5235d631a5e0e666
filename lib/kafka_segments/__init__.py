"""Rebuild and query the indexes of raw Kafka log segments with Spark."""

__version__ = "0.2.0"
