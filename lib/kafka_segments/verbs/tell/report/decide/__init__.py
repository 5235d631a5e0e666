"""Sum up a warehouse in rows whose number does not grow with its segments."""
