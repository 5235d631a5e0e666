"""Change files of other people so that each change can be had back."""
