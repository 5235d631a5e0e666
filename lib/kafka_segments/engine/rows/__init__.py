"""Batches and records of raw segments as rows: the data source ``kafka_segments``."""
