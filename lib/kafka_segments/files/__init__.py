"""Files and folders of any store, and segments in them. No Spark."""
