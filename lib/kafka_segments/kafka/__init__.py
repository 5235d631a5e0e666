"""Kafka's formats and rules as values: bytes in, values out. No Spark, no files, no clock."""
