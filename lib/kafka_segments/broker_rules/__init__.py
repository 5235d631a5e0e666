"""What a broker does with index files where no verb does it: start, truncation, lookups."""
