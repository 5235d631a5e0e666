"""What a start does with each log, and how long that takes: without files and clock."""
