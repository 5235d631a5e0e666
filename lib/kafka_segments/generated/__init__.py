"""Kafka's generated message formats: tables of fields, one decoder, Kafka's JSON form."""
