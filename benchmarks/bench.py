"""Measure beside Kafka's own code on the same files; writes docs/benchmarks.md.

Sections named as arguments are measured anew, the others are taken from benchmarks/results as the
last run left them; without arguments all are measured. ``--quick`` uses small inputs and writes
build/bench/quick: to see that it runs, not to publish. ``--before REVISION`` measures the named
sections (of those in ``before.py``; without arguments all of them) of an older revision and of this
one in turn; ``--before SECTION=REVISION`` takes another one for a section.
"""

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from at_hand import bench_at_hand, bench_by_number
from before import COMPARED, bench_before
from clustering import bench_clustering, bench_long_logs
from copies import bench_copies
from decisions import bench_decisions
from dumping import bench_dump
from internal_topics import bench_internals
from kernel import bench_kernel
from large import bench_large
from looks import bench_looks
from many import bench_many, bench_million
from many_logs import bench_many_logs
from model import cost_model
from plots import plot_growth, plot_throughput
from queries import bench_queries
from rolls import bench_rolls
from sections import ROOT, SCRATCH, Section, machine, usable_cores
from store_looks import bench_store_looks
from stores import bench_stores
from whole_job import bench_cores, bench_job

from search import bench_search
from upkeep import bench_upkeep

SECTIONS: dict[str, Callable[..., Section]] = {
    "kernel": bench_kernel,
    "job": bench_job,
    "cores": bench_cores,
    "many": bench_many,
    "million": bench_million,
    "many_logs": bench_many_logs,
    "large": bench_large,
    "looks": bench_looks,
    "store_looks": bench_store_looks,
    "stores": bench_stores,
    "copies": bench_copies,
    "at_hand": bench_at_hand,
    "by_number": bench_by_number,
    "dump": bench_dump,
    "internals": bench_internals,
    "decisions": bench_decisions,
    "rolls": bench_rolls,
    "search": bench_search,
    "upkeep": bench_upkeep,
    "queries": bench_queries,
    "clustering": bench_clustering,
    "long_logs": bench_long_logs,
}
PLOTS = {
    "throughput": (plot_throughput, ("kernel", "job"), "GB/s by shape of batch, beside Kafka's"),
    "growth": (plot_growth, ("many",), "Seconds of a build by number of segments"),
}
BEFORE = "before-{}"
RESULTS = ROOT / "benchmarks" / "results"
NOTES = ROOT / "benchmarks" / "notes"
DOCS = ROOT / "docs"
_MUCH_LOAD = 0.5


def measure(name: str, bench: Callable[..., Section], folder: Path, *, quick: bool) -> None:
    """Measure a section and keep it, with the machine, the day and the load it began under."""
    print(f"\n== {name}", flush=True)
    load, day = round(os.getloadavg()[0], 1), datetime.now(UTC).date()
    section = bench(quick=quick)
    kept = asdict(section) | {"load": load, "cores": usable_cores()}
    kept |= {"day": day.isoformat(), "machine": machine()}
    (folder / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


def report(folder: Path, images: Path) -> list[str]:
    """Put the kept sections together, the plots and the model with them."""
    kept: dict[str, dict[str, Any]] = {
        name: json.loads((folder / f"{name}.json").read_text("utf-8"))
        for name in (*SECTIONS, *map(BEFORE.format, COMPARED))
        if (folder / f"{name}.json").exists()
    }
    figures = {
        name: section["figures"] | {"cores": section["cores"]} for name, section in kept.items()
    }
    lines = ["# Benchmarks", "", "Made by `make bench`: each beside its peer, in one run.", ""]
    for name in (*SECTIONS, *map(BEFORE.format, COMPARED)):
        if name not in kept:
            lines += _note(name)
            continue
        section = kept[name]
        lines += [f"## {section['title']}", "", *section["lines"], ""]
        for plot, (draw, needed, caption) in PLOTS.items():
            if needed[-1] == name and all(map(figures.get, needed)):
                draw(figures, images / f"bench-{plot}.svg")
                lines += [f"![{caption}](images/bench-{plot}.svg)", ""]
        lines += [_measured(section), "", *_note(name)]
    if figures.get("job") and figures.get("many"):
        model = cost_model(figures)
        lines += [f"## {model.title}", "", *model.lines, ""]
    missing = [name for name in SECTIONS if name not in kept and not _note(name)]
    return [*lines, *([f"Not measured yet: {', '.join(missing)}.", ""] if missing else [])]


def _note(name: str) -> list[str]:
    """Return what was measured besides, by hand, and is kept below a section."""
    file = NOTES / f"{name}.md"
    return [file.read_text("utf-8")] if file.exists() else []


def _measured(section: dict[str, Any]) -> str:
    text = f"Measured {section['day']} on {section['machine']}"
    if section["load"] > _MUCH_LOAD * section["cores"]:
        text += f", after a minute of load {section['load']}, the section before it included"
    return f"{text}."


def _named(text: str) -> tuple[str, str]:
    """Take a revision and its section apart; "" stands for all others."""
    name, _, revision = text.rpartition("=")
    return name, revision


def main() -> None:
    """Measure what is named, write the report of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--before", action="append", default=[], metavar="[SECTION=]REVISION")
    given = parser.parse_args()
    known = COMPARED if given.before else SECTIONS
    revisions = dict(_named(text) for text in given.before)
    unknown = {*given.sections, *filter(None, revisions)} - set(known)
    if unknown:
        parser.error(
            f"no such section: {', '.join(sorted(unknown))}; there are: {', '.join(known)}"
        )
    folder = SCRATCH / "quick" if given.quick else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    if given.before:
        for name in given.sections or COMPARED:
            if revision := revisions.get(name, revisions.get("")):
                bench = partial(bench_before, name, revision)
                measure(BEFORE.format(name), bench, folder, quick=given.quick)
    else:
        for name in given.sections or SECTIONS:
            measure(name, SECTIONS[name], folder, quick=given.quick)
    target, images = DOCS / "benchmarks.md", DOCS / "images"
    if given.quick:
        target, images = folder / "benchmarks.md", folder / "images"
        images.mkdir(exist_ok=True)
    target.write_text("\n".join(report(folder, images)), "utf-8")
    print(f"written: {target}")


if __name__ == "__main__":
    main()
