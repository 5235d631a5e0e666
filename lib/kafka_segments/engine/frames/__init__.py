"""What verbs do with rows; which engine does it is chosen here, and nowhere in a verb."""
