"""Decide whether a statement only reads the tables and views of a warehouse."""
