"""Kafka's message formats as its JARs define them, one decoder, Kafka's JSON form."""
