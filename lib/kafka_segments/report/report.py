"""What ``report`` writes: one HTML page with its data, its scripts and its plots."""

import sys
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from plotly.offline import get_plotlyjs
from pyspark.sql import Row

from kafka_segments.console.output import utc
from kafka_segments.report.decide import KINDS
from kafka_segments.report.run import Forecast, ReportData
from kafka_segments.storage.files import place
from kafka_segments.storage.publishing import publish

_DAY_MS = 86_400_000
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEPS_PER_DOUBLING = 4
_MOST_BARS = 20


def print_report(data: ReportData, target: str) -> None:
    """Write the page to a URI, and say so; a page that is there is replaced."""
    page = render_report(data).encode("utf-8")
    publish(place(target), page)
    sys.stdout.write(f"{target} ({len(page)} bytes)\n")


def render_report(data: ReportData) -> str:
    """Return the page; names of topics and folders are text in it, whatever they hold."""
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"utc": utc, "size": size_text}
    return environment.from_string(_text("report.html.jinja")).render(
        data=data,
        plots=_plots(data),
        style=_text("report.css"),
        plotly=get_plotlyjs(),
        script=_text("report.js"),
    )


@cache
def _text(name: str) -> str:
    return files("kafka_segments.report").joinpath(name).read_text("utf-8")


def size_text(size_bytes: float) -> str:
    """Return a number of bytes as a person reads it."""
    size, unit = float(size_bytes), 0
    while abs(size) >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def _plots(data: ReportData) -> dict[str, Any]:
    """Return what the page's script draws, as compact as JSON allows."""
    steps = range(1, len(data.history_bytes) + 1)
    history_ms = [data.history_from_ms + step * data.history_width_ms for step in steps]
    return {
        "now": data.now_ms,
        "lanes": [_lane(lane) for lane in data.lanes],
        "spans": [[*span[:-1], KINDS.index(span["kind"])] for span in data.spans],
        "disk": {
            "time": [data.history_from_ms, *history_ms],
            "bytes": [0, *data.history_bytes],
        },
        "forecast": None if data.forecast is None else forecast_disk(data),
        "damage": _kinds(data.damage_kinds),
        "oddities": _kinds(data.oddity_kinds),
        "density": {
            "offset": _density(data.offset_index_density),
            "time": _density(data.time_index_density),
        },
        "blocked": [] if data.forecast is None else _blocked(data.forecast),
    }


def _lane(lane: Row) -> list[Any]:
    return [
        f"{lane['topic']}-{lane['partition']}",
        f"{lane['cluster'] or '-'} / {lane['broker_id']} / {lane['log_dir']}",
        lane["segments"],
        lane["size_bytes"],
        lane["damaged"],
        lane["in_future"],
        lane["by_mtime"],
        lane["oldest_ms"],
        lane["newest_ms"],
    ]


def _kinds(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in ("kind", "segments", "size_bytes")}


def _density(rows: list[Row]) -> dict[str, list[Any]]:
    """Return all bins from the first to the last, with empty ones, and one more at each end."""
    segments = {row["step"]: row["segments"] for row in rows}
    steps = range(min(segments) - 1, max(segments) + 2) if segments else range(0)
    return {
        "bytes": [2 ** ((step + 0.5) / _STEPS_PER_DOUBLING) for step in steps],
        "segments": [segments.get(step, 0) for step in steps],
    }


def _blocked(forecast: Forecast) -> list[list[Any]]:
    return [
        [
            f"{row['topic']}-{row['partition']} by {row['blocked_by_base_offset']}",
            row["size_bytes"],
            row["segments"],
        ]
        for row in forecast.blocked[:_MOST_BARS]
    ]


def forecast_disk(data: ReportData) -> dict[str, list[float]]:
    """Return the bytes on disk day by day under the retention that was decided.

    ``quiet`` holds if nothing more is written. ``steady`` holds if as much a day is written as in
    the last week, and each part of it is kept as long as it is today; limits by size are left out.
    """
    forecast = data.forecast
    if forecast is None:
        return {"time": [], "quiet": [], "steady": []}
    quiet = float(data.totals["size_bytes"])
    times: list[float] = [forecast.decided_at_ms]
    quiets, steadies = [quiet], [quiet]
    for day, freed in enumerate(forecast.freed_bytes):
        quiet -= freed
        written = sum(
            per_day * (day if kept_ms is None else min(day, max(kept_ms, 0) / _DAY_MS))
            for kept_ms, per_day in forecast.inflow
        )
        times.append(forecast.decided_at_ms + day * _DAY_MS)
        quiets.append(quiet)
        steadies.append(quiet + written)
    return {"time": times, "quiet": quiets, "steady": steadies}
