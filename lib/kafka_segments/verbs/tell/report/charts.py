"""The page's charts, with places in percent: they fit a phone and a wide screen alike.

Nothing here knows HTML; the template draws what these functions return.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import NamedTuple

_DOMINATED = 50  # a value so many times the median leaves nothing to see of the others
_MOST_MARKS = 6
_SQUARE = 1000
_BYTES = 1024


class Mark(NamedTuple):
    """A mark on an axis: its place in percent of the axis, and its text."""

    place: float
    text: str


class ChartBar(NamedTuple):
    """A bar: its label, its length in percent of the longest, its value in words."""

    label: str
    length: float
    value: str


class Bars(NamedTuple):
    """Bars; ``is_log`` tells whether their lengths are logarithmic."""

    bars: list[ChartBar]
    is_log: bool


class Line(NamedTuple):
    """A line: its label, its class in the style sheet, its points as x and y.

    ``is_stepped``: the value of a point holds until the next one.
    """

    label: str
    kind: str
    points: list[tuple[float, float]]
    is_stepped: bool = False


class Path(NamedTuple):
    """A line as it is drawn, in a square of 1000 by 1000."""

    label: str
    kind: str
    path: str


class LineChart(NamedTuple):
    """Lines, the marks of both axes, and whether the vertical one is logarithmic."""

    paths: list[Path]
    across: list[Mark]
    up: list[Mark]
    is_log: bool


class Axis(NamedTuple):
    """The axis of values from ``least`` to ``most``."""

    least: float
    most: float
    is_log: bool = False

    def place(self, value: float) -> float:
        """Return where a value lies, 0 to 1; one beyond the axis lies at its end."""
        value = min(max(value, self.least), self.most)
        if self.is_log:
            return math.log(value / self.least) / math.log(self.most / self.least)
        return (value - self.least) / (self.most - self.least)


def axis_for(values: Iterable[float]) -> Axis:
    """Return the axis that shows all values, logarithmic where the greatest dwarfs the others."""
    positive = [value for value in values if value > 0]
    most = max(positive, default=1)
    if not positive or most <= _DOMINATED * median(positive):
        return Axis(0.0, most)
    return Axis(max(min(positive) / 2, most / 1e12), most, is_log=True)


def bars(labelled: Sequence[tuple[str, float, str]]) -> Bars:
    """Return a bar for each label, value and value in words."""
    axis = axis_for(value for _, value, _ in labelled)
    drawn = [
        ChartBar(label, round(100 * axis.place(value), 2), words)
        for label, value, words in labelled
    ]
    return Bars(drawn, axis.is_log)


def line_chart(
    lines: Sequence[Line],
    across: Axis,
    across_marks: Sequence[tuple[float, str]],
    *,
    text: Callable[[float], str],
    are_bytes: bool,
) -> LineChart:
    """Return lines over one axis of values.

    Args:
        lines: lines, their points from left to right.
        across: the horizontal axis.
        across_marks: values on it, with their texts.
        text: gives the text of a mark on the vertical axis.
        are_bytes: units of the vertical axis are powers of 1024.
    """
    up = axis_for(y for line in lines for _, y in line.points)
    marks = _powers(up, are_bytes) if up.is_log else _round_numbers(up.most, are_bytes)
    return LineChart(
        [Path(line.label, line.kind, _path(line, across, up)) for line in lines],
        [Mark(round(100 * across.place(at), 2), label) for at, label in across_marks],
        [Mark(round(100 * up.place(at), 2), text(at)) for at in marks],
        up.is_log,
    )


def _path(line: Line, across: Axis, up: Axis) -> str:
    """Return a line as a path of SVG; steps without a change are left out."""
    placed = [
        (round(_SQUARE * across.place(x), 1), round(_SQUARE * (1 - up.place(y)), 1))
        for x, y in line.points
    ]
    if not line.is_stepped:
        return "M" + "L".join(f"{x:g} {y:g}" for x, y in placed)
    (x, y), *others = placed
    parts = [f"M{x:g} {y:g}"]
    for x, now in others:
        if now != y:
            parts.append(f"H{x:g}V{now:g}")
        y = now
    return "".join([*parts, f"H{x:g}"])


def _powers(axis: Axis, are_bytes: bool) -> list[float]:
    """Return a few powers of 2, for bytes, or of 10."""
    base, everies = (2, (1, 2, 5, 10, 20)) if are_bytes else (10, (1, 2, 3, 6))
    first = math.ceil(math.log(axis.least, base))
    last = math.floor(math.log(axis.most, base) + 1e-9)
    every = next((n for n in everies if (last - first) // n < _MOST_MARKS), everies[-1])
    return [float(base) ** power for power in range(-(-first // every) * every, last + 1, every)]


def _round_numbers(most: float, are_bytes: bool) -> list[float]:
    """Return 0 and the multiples of 1, 2 or 5 tens of a unit, as many as are readable."""
    unit = 1.0
    while are_bytes and most / unit >= _BYTES:
        unit *= _BYTES
    tens = 10.0 ** math.floor(math.log10(most / unit / _MOST_MARKS))
    steps = (times * tens for times in (1, 2, 5, 10, 20))
    step = next(step for step in steps if most / unit / step < _MOST_MARKS)
    if unit == 1:
        step = max(1.0, step)  # there is no half of a segment or of a byte
    return [number * step * unit for number in range(int(most / unit / step + 1e-9) + 1)]
