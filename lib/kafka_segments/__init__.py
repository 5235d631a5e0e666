"""Rebuild and query the indexes of raw Kafka log segments with Spark.

In a notebook: ``kafka_segments.open(warehouse)``, see docs/api.md. Spark is imported when one of
the names that need it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kafka_segments.errors import KafkaSegmentsError, UsageError
from kafka_segments.release import __version__

if TYPE_CHECKING:
    from kafka_segments.api.directories import (
        CleanerStands,
        DiskAccount,
        FoundRecords,
        Triage,
        cleaner,
        disk,
        records,
        triage,
    )
    from kafka_segments.api.forecasts import StartForecast, forecast
    from kafka_segments.api.opening import open, register
    from kafka_segments.api.warehouse import OpenWarehouse

__all__ = [
    "CleanerStands",
    "DiskAccount",
    "FoundRecords",
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
    "records",
    "register",
    "triage",
]

_NO_SPARK = {
    **dict.fromkeys(
        (
            *("CleanerStands", "DiskAccount", "FoundRecords", "Triage"),
            *("cleaner", "disk", "records", "triage"),
        ),
        "directories",
    ),
    **dict.fromkeys(("StartForecast", "forecast"), "forecasts"),
}
_SPARK = {"OpenWarehouse": "warehouse", "open": "opening", "register": "opening"}


def __getattr__(name: str) -> Any:
    """Return a name of ``api``."""
    if name in _SPARK:
        from kafka_segments.extras import require_extra  # noqa: PLC0415  few need it

        require_extra("spark", f"kafka_segments.{name}")
    room = {**_NO_SPARK, **_SPARK}.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.api.{room}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
