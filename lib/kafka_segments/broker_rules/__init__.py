"""What a broker does with index files where no verb of ours does it: at start, on truncation."""
