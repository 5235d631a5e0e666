"""States of remote segments, and what contradicts them; no files, no clock."""
