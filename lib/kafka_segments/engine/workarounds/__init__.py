"""What Spark and PySpark have no public way for, each with the release that still lacks it."""
