"""What a broker does at its start with log directories, and what of theirs ends or costs it."""
