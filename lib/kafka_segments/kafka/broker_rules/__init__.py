"""Rules of brokers that belong to no verb: start, truncation, lookups, limits, releases."""
