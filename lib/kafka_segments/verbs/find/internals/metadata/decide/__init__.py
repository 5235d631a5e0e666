"""Decisions over copies of the metadata log: which agree, and what each entry changed."""
