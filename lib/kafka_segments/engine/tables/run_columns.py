"""The columns that say of a row which run made it, and when."""

from pyspark.sql import Column
from pyspark.sql import functions as F


def stamp_of(run_id: str, now_ms: int, *, clock: str = "decided_at") -> dict[str, Column]:
    """Return the columns run_id (string) and ``clock`` (timestamp), by name.

    ``now_ms``: the run's clock, in ms since 1970.
    """
    return {"run_id": F.lit(run_id), clock: F.timestamp_millis(F.lit(now_ms))}
