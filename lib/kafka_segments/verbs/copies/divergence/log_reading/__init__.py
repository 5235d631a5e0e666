"""What one copy of a log holds, as far as comparing needs it: ranges, batches, records."""
