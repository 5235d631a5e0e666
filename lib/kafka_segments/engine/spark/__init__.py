"""Adapters to Spark and Delta."""
