"""What the page says and draws, for each chart: a sentence, the chart, and the same as a table."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from pyspark.sql import Row

from kafka_segments.console.output import duration, size_text, utc
from kafka_segments.kafka.text.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kafka_segments.kafka.text.plain_text import first_of
from kafka_segments.verbs.tell.report.charts import Axis, Bars, Line, LineChart, bars, line_chart
from kafka_segments.verbs.tell.report.crash import THREADS, Crash
from kafka_segments.verbs.tell.report.forecast import forecast_disk
from kafka_segments.verbs.tell.report.number_texts import (
    count_text,
    many,
    round_size_text,
    share_text,
)
from kafka_segments.verbs.tell.report.run import (
    MOST_TOPICS,
    ReportData,
    RetentionForecast,
    bytes_by_topic,
)
from kafka_segments.verbs.tell.report.time_axis import time_marks

MOST_BARS = 20
_MOST_DIRS = 100
_MOST_ROWS = 40
_STEPS_PER_DOUBLING = 4
_MOST_DENSITY_MARKS = 6
_FORECASTS = ("if nothing more is written", "if as much is written as in the last 7 days")
_BANDS = (
    *("in the last hour>", "1 to 24 hours ago>", "1 to 7 days ago>", "7 to 30 days ago>"),
    "earlier>",
)
_DENSITY_NAMES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
_Item = TypeVar("_Item")


class BarView(NamedTuple):
    """A chart of bars with their values beside them, and what it says."""

    says: str
    chart: Bars


class Grid(NamedTuple):
    """A table of text; headings that end in ``>`` stand over numbers."""

    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]


class TableView(NamedTuple):
    """A table, and what it says."""

    says: str
    table: Grid


class LineView(NamedTuple):
    """A chart of lines, what it says, and its values."""

    says: str
    chart: LineChart
    table: Grid


def topics(data: ReportData) -> BarView:
    """Return the topics with the most bytes, summed over the page's partitions."""
    size = bytes_by_topic(data.lanes)
    ordered = list(size)
    partitions = Counter(lane["topic"] for lane in data.lanes)
    drawn = [
        (topic, size[topic], f"{size_text(size[topic])}, {many(partitions[topic], 'partition')}")
        for topic in ordered[:MOST_TOPICS]
    ]
    if not ordered:
        return BarView("There are no segments.", bars(drawn))
    return BarView(_says_of_topics(data, ordered[0], size), bars(drawn))


def _says_of_topics(data: ReportData, first: str, size: dict[str, int]) -> str:
    whole, largest = data.totals["size_bytes"], data.lanes[0]
    said = (
        f"{many(len(size), 'topic')}. {first} holds {share_text(size[first], whole)} of the bytes,"
        f" the largest partition, {largest['topic']}-{largest['partition']},"
        f" {share_text(largest['size_bytes'], whole)}."
    )
    if len(size) > MOST_TOPICS:
        said += f" The {MOST_TOPICS} largest topics are shown."
    if data.totals["logs"] > len(data.lanes):
        said += f" Summed over the {count_text(len(data.lanes))} largest partitions."
    return said


def topics_over_time(data: ReportData) -> Grid:
    """Return the bytes of these topics by when they were written."""
    bands = (*range(len(_BANDS)), None)
    rows = [
        (topic, *(size_text(data.ages.get((topic, band), 0)) for band in bands))
        for topic in list(bytes_by_topic(data.lanes))[:MOST_TOPICS]
    ]
    return Grid(("topic", *_BANDS, "not known>"), rows)


def log_dirs(data: ReportData) -> TableView:
    """Return what each log directory holds, and what retention frees of it now."""
    shown = data.dirs[:_MOST_DIRS]
    headings: tuple[str, ...] = (
        *("cluster", "broker>", "log directory", "partitions>", "segments>", "bytes>"),
        *("damaged>", "not known whether sound>"),
    )
    rows: list[tuple[str, ...]] = [
        (
            row["cluster"] or "-",
            str(row["broker_id"]) if row["broker_id"] >= 0 else "-",
            row["log_dir"],
            *(count_text(row["logs"]), count_text(row["segments"]), size_text(row["size_bytes"])),
            *(count_text(row["damaged"]), count_text(row["unverified"])),
        )
        for row in shown
    ]
    if data.forecast is not None:
        headings = (*headings, "retention frees now>", "not known whether they go>")
        decided = {_dir_of(row): row for row in data.forecast.by_dir}
        rows = [
            (*cells, *_freed(row["segments"], decided.get(_dir_of(row))))
            for cells, row in zip(rows, shown, strict=True)
        ]
    return TableView(_says_of_dirs(data, shown), Grid(headings, rows))


def _dir_of(row: Row) -> tuple[str, int, str]:
    return row["cluster"], row["broker_id"], row["log_dir"]


def _freed(segments: int, decided: Row | None) -> tuple[str, str]:
    """Return what goes now, and of how many segments that is not known."""
    if decided is None:
        return "not known", count_text(segments)
    not_decided = segments - decided["decided"]
    return size_text(decided["freed_bytes"]), count_text(not_decided + decided["not_known"])


def _says_of_dirs(data: ReportData, shown: Sequence[Row]) -> str:
    if not shown:
        return "There are no segments."
    brokers = many(len({_dir_of(row)[:2] for row in shown}), "broker")
    dirs = "1 log directory" if len(shown) == 1 else f"{count_text(len(shown))} log directories"
    more = ", those with the most bytes; there are more" if len(data.dirs) > len(shown) else ""
    first = shown[0]
    whose = f" of broker {first['broker_id']}" if first["broker_id"] >= 0 else ""
    share = share_text(first["size_bytes"], data.totals["size_bytes"])
    return f"{dirs} of {brokers}{more}. {first['log_dir']}{whose} holds {share} of the bytes."


def disk(data: ReportData) -> LineView:
    """Return the bytes on disk over time, with the forecast where there is one."""
    ends = range(1, len(data.history_bytes) + 1)
    times = [data.history_from_ms + end * data.history_width_ms for end in ends]
    shown = [data.history_from_ms, *(min(time, data.now_ms) for time in times)]
    history = list(zip(shown, [0, *data.history_bytes], strict=True))
    told = forecast_disk(data)
    since, until = data.history_from_ms, max([data.now_ms, *told.times])
    lines = [Line("on disk", "solid", [*history], is_stepped=True)]
    for label, kind, values in zip(_FORECASTS, ("dashed", "dotted"), told[1:], strict=True):
        if values:
            lines.append(Line(label, kind, list(zip(told.times, values, strict=True))))
    chart = line_chart(
        lines,
        Axis(min(since, until - 1), until),
        time_marks(since, until),
        text=round_size_text,
        are_bytes=True,
    )
    before = [(utc(at), size_text(value), "", "") for at, value in _thinned(history)]
    after = [
        (utc(at), "", size_text(quiet), size_text(steady))
        for at, quiet, steady in _thinned(list(zip(*told, strict=True)))
    ]
    headings = ("time (UTC)", "on disk>", *(f"{label}>" for label in _FORECASTS))
    shown_columns = len(headings) if after else 2
    rows = [row[:shown_columns] for row in (*before, *after)]
    return LineView(_says_of_disk(data), chart, Grid(headings[:shown_columns], rows))


def _says_of_disk(data: ReportData) -> str:
    said = (
        f"{size_text(data.totals['size_bytes'])} now. The most since {utc(data.history_from_ms)}"
        f" was {size_text(max(data.history_bytes, default=0))}."
    )
    told = forecast_disk(data)
    if not told.times:
        return said
    return (
        f"{said} In {len(told.times) - 2} days: {size_text(told.quiet[-1])} {_FORECASTS[0]},"
        f" {size_text(told.steady[-1])} {_FORECASTS[1]}."
    )


def kinds(rows: Sequence[Row]) -> Bars:
    """Return segments by kind, the most frequent first."""
    return bars(
        [
            (
                row["kind"],
                row["segments"],
                f"{many(row['segments'], 'segment')}, {size_text(row['size_bytes'])}",
            )
            for row in rows
        ]
    )


def blocked(forecast: RetentionForecast) -> Bars:
    """Return what older segments hold back, the most bytes first."""
    return bars(
        [
            (
                f"{row['topic']}-{row['partition']} by {row['blocked_by_base_offset']}",
                row["size_bytes"],
                f"{size_text(row['size_bytes'])}, {many(row['segments'], 'segment')}",
            )
            for row in forecast.blocked[:MOST_BARS]
        ]
    )


def crashes(found: Sequence[Crash], left_out: Sequence[Row]) -> TableView:
    """Return what a crash costs each broker, the longest start first; and who is left out."""
    default = THREADS.index(2)
    ordered = sorted(found, key=lambda crash: -crash.seconds[default])
    says = " ".join([*map(_worst_crash, ordered[:1]), *_not_forecast(left_out)])
    headings = (
        *("cluster", "broker>", "partitions>", "segments>", "read again>", "bytes>"),
        *(f"{many(threads, 'thread')}>" for threads in THREADS),
        "with a kit>",
    )
    rows = [
        (
            crash.cluster or "-",
            str(crash.broker_id) if crash.broker_id >= 0 else "-",
            count_text(crash.logs),
            *(count_text(crash.segments), count_text(crash.recovered_segments)),
            size_text(crash.recovered_bytes),
            *map(_duration, crash.seconds),
            _duration(crash.with_kit),
        )
        for crash in ordered[:_MOST_ROWS]
    ]
    return TableView(says, Grid(headings, rows))


def _worst_crash(worst: Crash) -> str:
    default = THREADS.index(2)
    whose = f"broker {worst.broker_id}, " if worst.broker_id >= 0 else ""
    return (
        f"A broker that died now would read {size_text(worst.recovered_bytes)} in"
        f" {many(worst.recovered_segments, 'segment')} again before it serves:"
        f" {whose}about {_duration(worst.seconds[default])} with 2 threads, its default;"
        f" after a recovery kit {_duration(worst.with_kit)}. Recovery points are those of"
        f" the last build. Costs are assumed, and may be wrong by {worst.error:.0%}: run"
        " kafka-segments recovery forecast with --calibrate on the broker."
    )


def _not_forecast(brokers: Sequence[Row]) -> list[str]:
    if not brokers:
        return []
    names = first_of((row["broker_id"] for row in brokers), _MOST_ROWS)
    return [
        f"Left out: broker {names}, as segments of theirs are known by a first look alone,"
        " which does not tell how many batches a start would read. Run kafka-segments build without"
        " --check index to have them here."
    ]


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else duration(round(seconds) * 1000)


def density(data: ReportData) -> LineView | None:
    """Return segments by the bytes of log per index entry; None where none has entries."""
    counted = [
        {row["step"]: row["segments"] for row in rows}
        for rows in (data.offset_index_density, data.time_index_density)
    ]
    steps = sorted({step for segments in counted for step in segments})
    if not steps:
        return None
    first, last = steps[0] - 1, steps[-1] + 2
    lines = [
        Line(
            name,
            kind,
            [(step, segments.get(step, 0)) for step in range(first, last + 1)],
            is_stepped=True,
        )
        for name, kind, segments in zip(_DENSITY_NAMES, ("solid", "dashed"), counted, strict=True)
        if segments
    ]
    chart = line_chart(
        lines, Axis(first, last), _density_marks(first, last), text=count_text, are_bytes=False
    )
    rows = [
        (f"from {size_text(_begin(step))}", *(count_text(of.get(step, 0)) for of in counted))
        for step in steps
    ]
    headings = ("bytes of log per entry", *(f"{name}>" for name in _DENSITY_NAMES))
    return LineView(_says_of_density(counted), chart, Grid(headings, rows))


def _says_of_density(counted: Sequence[dict[int, int]]) -> str:
    """Return for each index a sentence about the bin of its median segment."""
    said = []
    for name, segments in zip(_DENSITY_NAMES, counted, strict=True):
        if not segments:
            said.append(f"No {name} has entries.")
            continue
        half, seen = sum(segments.values()) / 2, 0
        for step in sorted(segments):
            seen += segments[step]
            if seen >= half:
                said.append(
                    f"Half of the {name} files have an entry for each {size_text(_begin(step + 1))}"
                    " of log or less."
                )
                break
    return " ".join(said)


def _begin(step: int) -> float:
    return math.exp2(step / _STEPS_PER_DOUBLING)


def _density_marks(first: int, last: int) -> list[tuple[float, str]]:
    doublings = range(-(-first // _STEPS_PER_DOUBLING), last // _STEPS_PER_DOUBLING + 1)
    every = max(1, -(-len(doublings) // _MOST_DENSITY_MARKS))
    return [
        (doubling * _STEPS_PER_DOUBLING, round_size_text(2.0**doubling))
        for doubling in doublings
        if doubling % every == 0
    ]


def _thinned(rows: Sequence[_Item]) -> list[_Item]:
    """Return as many rows as a person reads, spread evenly, with the last one."""
    every = max(1, -(-len(rows) // _MOST_ROWS))
    return [*rows[: len(rows) - 1 : every], *rows[-1:]]
