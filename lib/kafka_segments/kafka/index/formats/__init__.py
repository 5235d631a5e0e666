"""The index formats that a build can write, Kafka's own and others."""
