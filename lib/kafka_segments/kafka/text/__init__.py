"""Texts that Kafka and its tools write or take: names, ids, moments, configs, checkpoints."""
