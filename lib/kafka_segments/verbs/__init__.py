"""What people ask for: one room each, grouped by what they do."""
