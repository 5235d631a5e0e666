"""``migrate inventory``: the formats of segments, and what stands in the way of Kafka 4."""
