"""``internals transactions``: open transactions, and whether anything ends them."""
