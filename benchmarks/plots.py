"""The plots of docs/benchmarks.md, as SVG."""

import re
from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams |= {"svg.hashsalt": "benchmarks", "svg.fonttype": "none", "font.size": 9}

from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

Figures = Mapping[str, Mapping[str, float]]
_OURS, _KAFKA = "#0b6e99", "#b0b7bf"


def plot_throughput(figures: Figures, target: Path) -> None:
    """Draw GB/s of the kernel and of the whole job, ours beside Kafka's, on a log scale."""
    figure, (kernel, job) = pyplot.subplots(1, 2, figsize=(9, 3.2), width_ratios=(2, 1))
    _pairs(kernel, figures["kernel"], "ours ")
    kernel.set_title("one core, GB/s", loc="left")
    _pairs(job, figures["job"], "scan ")
    job.set_title(f"scan job, {figures['job']['cores']:.0f} cores, GB/s", loc="left")
    names = ("kafka-segments", "LogSegment.recover()")
    kernel.legend(names, frameon=False, ncols=2, loc="upper right", bbox_to_anchor=(1, 1.2))
    _save(figure, target)


def _pairs(axes: Axes, figures: Mapping[str, float], ours: str) -> None:
    """Draw the figures whose names begin with ``ours``, each beside Kafka's."""
    names = [name.removeprefix(ours) for name in figures if name.startswith(ours)]
    places = range(len(names))
    for whose, shift, colour in ((ours, -0.2, _OURS), ("kafka ", 0.2, _KAFKA)):
        values = [figures[f"{whose}{name}"] for name in names]
        bars = axes.bar([place + shift for place in places], values, 0.38, color=colour)
        axes.bar_label(bars, fmt="%.2g", fontsize=7)
    axes.set_xticks(list(places), [re.sub(", | (?=message|wrapper)", "\n", name) for name in names])
    axes.set_yscale("log")
    axes.spines[["top", "right"]].set_visible(False)


def plot_growth(figures: Figures, target: Path) -> None:
    """Draw the seconds of builds over the number of segments."""
    figure, axes = pyplot.subplots(figsize=(5, 3.2))
    for kind, label in (("first", "first build"), ("unchanged", "nothing changed")):
        points = sorted(
            (int(name.partition(" ")[2]), seconds)
            for name, seconds in figures["many"].items()
            if name.startswith(f"{kind} ")
        )
        axes.plot(*zip(*points, strict=True), marker="o", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("segments of 4 KB")
    axes.set_ylabel("s")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    _save(figure, target)


def _save(figure: Figure, target: Path) -> None:
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})
    pyplot.close(figure)
