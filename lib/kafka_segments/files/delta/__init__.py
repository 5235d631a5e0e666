"""Delta tables by their logs and files, without Spark: read, made, written, found broken."""
