"""Search: offsets for times, Kafka's answer beside the true one."""
