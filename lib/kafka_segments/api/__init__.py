"""The public API: the tables of a warehouse and the verbs' answers as DataFrames, for notebooks.

``kafka_segments.open``, ``kafka_segments.register`` and ``kafka_segments.forecast`` are these;
docs/api.md has every name. What needs no tables (``directories``, ``forecasts``) needs no Spark.
"""
