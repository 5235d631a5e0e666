"""The keys of the tables, and the type of what turns one DataFrame into another."""

from collections.abc import Callable

from pyspark.sql import DataFrame

LOG_KEYS = ("cluster", "broker_id", "log_dir", "topic", "partition")


SEGMENT_KEYS = (*LOG_KEYS, "base_offset")


Transform = Callable[[DataFrame], DataFrame]
