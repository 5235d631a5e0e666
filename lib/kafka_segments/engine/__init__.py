"""What runs a verb: Spark, the warehouse's tables, listed sources, rows of segments."""
