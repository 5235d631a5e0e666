"""The rules of a segment's indexes, over values. No Spark, no files, no clock."""
