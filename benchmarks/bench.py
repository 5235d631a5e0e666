"""Measure beside Kafka's own code on the same files; writes docs/benchmarks.md.

Sections named as arguments are measured anew, the others are taken from build/bench as the last
run left them; without arguments all are measured. ``--quick`` uses small inputs and writes
build/bench/quick.md: to see that it runs, not to publish.
"""

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clustering import bench_clustering
from decisions import bench_decisions
from dumping import bench_dump
from first_result import bench_first_result
from kernel import bench_kernel
from many import bench_many
from model import cost_model
from plots import plot_growth, plot_throughput
from queries import bench_queries
from rolls import bench_rolls
from search import bench_search
from sections import ROOT, SCRATCH, Section, machine
from stores import bench_stores
from whole_job import bench_cores, bench_job

from upkeep import bench_upkeep

SECTIONS: dict[str, Callable[..., Section]] = {
    "kernel": bench_kernel,
    "job": bench_job,
    "cores": bench_cores,
    "many": bench_many,
    "stores": bench_stores,
    "first_result": bench_first_result,
    "dump": bench_dump,
    "decisions": bench_decisions,
    "rolls": bench_rolls,
    "search": bench_search,
    "upkeep": bench_upkeep,
    "queries": bench_queries,
    "clustering": bench_clustering,
}
PLOTS = {
    "throughput": (plot_throughput, "kernel", "GB/s by shape of batch, beside Kafka's"),
    "growth": (plot_growth, "many", "Seconds of a build by number of segments"),
}
DOCS = ROOT / "docs"
_MUCH_LOAD = 0.5


def measure(name: str, folder: Path, *, quick: bool) -> None:
    """Measure a section and keep it, with the moment and the load that it began under."""
    print(f"\n== {name}", flush=True)
    load, started = os.getloadavg()[0], datetime.now(UTC)
    section = SECTIONS[name](quick=quick)
    kept = asdict(section) | {"load": load, "at": started.isoformat(timespec="minutes")}
    (folder / f"{name}.json").write_text(json.dumps(kept, indent=1), "utf-8")


def report(folder: Path) -> list[str]:
    """Put the kept sections together, the plots and the model with them."""
    kept: dict[str, dict[str, Any]] = {
        name: json.loads((folder / f"{name}.json").read_text("utf-8")) for name in SECTIONS
    }
    figures = {name: section["figures"] for name, section in kept.items()}
    lines = [
        "# Benchmarks",
        "",
        f"`make bench` on {machine()}. Each section beside its peer, on the same files in one run.",
        "",
    ]
    images = DOCS / "images" if folder == SCRATCH else folder
    for name, section in kept.items():
        lines += [f"## {section['title']}", "", *section["lines"], ""]
        for plot, (draw, of, caption) in PLOTS.items():
            if of == name:
                draw(figures, images / f"bench-{plot}.svg")
                lines += [f"![{caption}](images/bench-{plot}.svg)", ""]
        if section["load"] > _MUCH_LOAD * (os.cpu_count() or 1):
            lines += [f"Measured under a load of {section['load']:.1f} by other work.", ""]
    model = cost_model(figures)
    days = sorted({section["at"][:10] for section in kept.values()})
    measured = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return [*lines, f"## {model.title}", "", *model.lines, "", f"Measured {measured}.", ""]


def main() -> None:
    """Measure what is named, write the report of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    unknown = set(given.sections) - set(SECTIONS)
    if unknown:
        parser.error(
            f"no such section: {', '.join(sorted(unknown))}; there are: {', '.join(SECTIONS)}"
        )
    folder = SCRATCH / "quick" if given.quick else SCRATCH
    folder.mkdir(parents=True, exist_ok=True)
    for name in given.sections or SECTIONS:
        measure(name, folder, quick=given.quick)
    missing = [name for name in SECTIONS if not (folder / f"{name}.json").exists()]
    if missing:
        print(f"no report yet, not measured: {', '.join(missing)}")
        return
    target = folder / "quick.md" if given.quick else DOCS / "benchmarks.md"
    target.write_text("\n".join(report(folder)), "utf-8")
    print(f"written: {target}")


if __name__ == "__main__":
    main()
