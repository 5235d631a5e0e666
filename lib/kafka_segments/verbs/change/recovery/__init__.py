"""Recovery: what a broker's start after a crash does, and how long that takes."""
