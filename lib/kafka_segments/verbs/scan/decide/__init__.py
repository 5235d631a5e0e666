"""What a build reads, and what a fold over whole logs says of their segments."""
