"""What validation measures of each table, what must hold of it, and which segments fail."""
