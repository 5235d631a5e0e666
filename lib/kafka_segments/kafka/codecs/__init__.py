"""Decompression and compression of batches as Kafka's own clients do it, in plain Python."""
