"""A whole log: what crosses its segments, as a broker's load folds them."""
