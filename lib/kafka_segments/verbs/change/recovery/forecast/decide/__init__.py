"""What a start does with each log, and how long that takes; no files, no clock."""
