"""What the commands do, step by step."""
