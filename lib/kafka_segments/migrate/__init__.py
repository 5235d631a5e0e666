"""Migrate: log directories of old clusters brought to what a Kafka 4 broker should find."""
