"""Whether and how a verb shows its progress."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_segments.console.bar import ReadProgress


@contextmanager
def progress(spark: "SparkSession | None") -> Iterator["ReadProgress"]:
    """Show on stderr, where that is a terminal, how far the running Spark stage is.

    What is read is shown in bytes with the time left, if the verb tells ``ReadProgress`` of it;
    other stages in tasks. Without a session, and over Spark Connect, where the client does not see
    the stages of others' jobs, only what this process reads itself is shown. The bar ends before
    the first line on stdout.
    """
    from kafka_segments.console.bar import ProgressBar, ReadProgress  # noqa: PLC0415

    work = ReadProgress(is_shown=sys.stderr.isatty())
    if not work.is_shown:
        yield work
        return
    with ProgressBar(spark, work).shown():
        yield work
