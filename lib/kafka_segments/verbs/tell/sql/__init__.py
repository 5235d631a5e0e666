"""Sql: one query over the tables of a warehouse."""
