"""The Delta tables of a warehouse: schemas, keys, writes, views."""
