"""Files and folders, wherever they lie. No Spark."""
