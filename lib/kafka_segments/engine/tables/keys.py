"""The keys of the tables, and the type of what turns one DataFrame into another."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import DataFrame  # who only asks for keys does not wait for Spark

LOG_KEYS = ("cluster", "broker_id", "log_dir", "topic", "partition")


SEGMENT_KEYS = (*LOG_KEYS, "base_offset")


Transform: TypeAlias = "Callable[[DataFrame], DataFrame]"
