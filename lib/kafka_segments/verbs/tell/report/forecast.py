"""The disk in the days to come, under the retention that was decided."""

from typing import NamedTuple

from kafka_segments.verbs.tell.report.decide.overview import DAY_MS
from kafka_segments.verbs.tell.report.run import ReportData


class DiskForecast(NamedTuple):
    """Bytes on disk by moment, in ms since 1970, from now on.

    ``quiet``: if nothing more is written. ``steady``: if as much a day is written as in the last
    week, and all of it is kept as long as today; limits by size are left out.
    """

    times: list[int]
    quiet: list[float]
    steady: list[float]


def forecast_disk(data: ReportData) -> DiskForecast:
    """Return the bytes on disk day by day; empty: retention has not been decided."""
    forecast = data.forecast
    if forecast is None:
        return DiskForecast([], [], [])
    quiet = float(data.totals["size_bytes"])
    told = DiskForecast([data.now_ms], [quiet], [quiet])
    for day, freed in enumerate(forecast.freed_bytes):
        quiet -= freed
        written = sum(
            per_day * (day if kept_ms is None else min(day, max(kept_ms, 0) / DAY_MS))
            for kept_ms, per_day in forecast.inflow
        )
        told.times.append(data.now_ms + day * DAY_MS)
        told.quiet.append(quiet)
        told.steady.append(quiet + written)
    return told
