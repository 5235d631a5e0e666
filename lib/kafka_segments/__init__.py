"""Rebuild and query the indexes of raw Kafka log segments with Spark.

In a notebook: ``kafka_segments.open(warehouse)``, see docs/api.md. Spark is imported when the first
of these names is asked for.
"""

from typing import TYPE_CHECKING, Any

from kafka_segments.errors import KafkaSegmentsError, UsageError
from kafka_segments.release import __version__

if TYPE_CHECKING:
    from kafka_segments.api import (
        CleanerStands,
        DiskAccount,
        OpenWarehouse,
        StartForecast,
        Triage,
        cleaner,
        disk,
        forecast,
        open,
        register,
        triage,
    )

__all__ = [
    "CleanerStands",
    "DiskAccount",
    "KafkaSegmentsError",
    "OpenWarehouse",
    "StartForecast",
    "Triage",
    "UsageError",
    "__version__",
    "cleaner",
    "disk",
    "forecast",
    "open",
    "register",
    "triage",
]


def __getattr__(name: str) -> Any:
    """Return a name of ``api``."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kafka_segments import api  # noqa: PLC0415  it imports Spark

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
