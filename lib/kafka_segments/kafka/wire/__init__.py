"""Kafka's formats: bytes to values and back. No Spark, no files, no clock."""
