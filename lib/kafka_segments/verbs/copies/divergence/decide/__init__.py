"""Where copies of a log differ, and whether that is a fault; no files, no clock."""
