"""States of groups from records of __consumer_offsets; no files, no clock."""
