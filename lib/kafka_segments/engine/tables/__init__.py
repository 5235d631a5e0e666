"""The Delta tables of a warehouse: names, schemas, keys, reads, writes, upgrades."""
