"""Migrate: bring log directories of old clusters to what a Kafka 4 broker should find."""
