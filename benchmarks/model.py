"""What a petabyte costs on 500 cores, from what the other sections measured."""

from collections.abc import Mapping

from sections import Section

from kafka_segments.files.storage.range_concurrency import LARGEST_READ_BYTES
from kafka_segments.verbs.scan.first_looks import LOOKS_AT_ONCE

Figures = Mapping[str, Mapping[str, float]]
CORES = 500
BYTES = 1e15
SEGMENT_BYTES = 1e9
INDEX_INTERVAL_BYTES = 4096
# Assumptions, not measured here.
STORE_BYTES_A_CORE = 60e6
DISK_CORES = 8
REQUEST_SECONDS = 0.03
REQUESTS_A_PREFIX = 5_500  # a second, as S3's documentation has it
LOOK_CORES = 32  # of one machine
DOLLARS_A_CORE_HOUR = 0.05
DOLLARS_A_MILLION_GETS = 0.4
_HOUR = 3600


def cost_model(figures: Figures) -> Section:
    """Extrapolate the scan, the tables and the driver's work; needs sections ``job``, ``many``.

    A million segments, where they were measured, are the larger of the two runs that tell what one
    segment more adds.
    """
    job, many = figures["job"], {**figures["many"], **figures.get("million", {})}
    section = Section("1 PB on 500 cores: a model")
    section.lines += [
        "From the figures above, in proportion: bytes by core, with the entries that tasks write;"
        " the tables by bytes, the whole of their step, what is fixed in it too; segments by"
        " number. Not measured, assumed: segments of 1 GB; a core draws"
        f" {STORE_BYTES_A_CORE / 1e6:.0f} MB/s from an object store, or {DISK_CORES} cores share a"
        " disk as fast as this machine's; no core waits for another.",
        "",
    ]
    columns = ("batches", "CPU of the scan h", "the tables h at most", "reading a store h")
    section.table(*columns, "reading disks h", "wall with a store h", "entries, 10^9")
    for name, batch_bytes in (("16 KB", 16 * 1024), ("1 KB", 1024)):
        cores = job["cores"]
        scan = BYTES / (job[f"scan {name}"] * 1e9 / cores) / CORES / _HOUR
        tables = job[f"tables s a GB {name}"] * cores * BYTES / 1e9 / CORES / _HOUR
        store = BYTES / STORE_BYTES_A_CORE / CORES / _HOUR
        disks = BYTES / (job["disk"] * 1e9) / (CORES / DISK_CORES) / _HOUR
        wall = max(store, scan) + tables + driver_hours(many)
        section.row(
            name,
            *(f"{hours:.2f}" for hours in (scan, tables, store, disks)),
            f"**{wall:.1f}**",
            f"{_entries(batch_bytes) / 1e9:,.0f}",
        )
        section.figures[f"wall {name}"] = wall
    wall = section.figures["wall 16 KB"]
    gets = BYTES / LARGEST_READ_BYTES
    section.lines += [
        "",
        f"The driver's own work on {BYTES / SEGMENT_BYTES:,.0f} segments (a build with nothing"
        f" changed, {per_segment(many, 'unchanged') * 1e3:.2f} ms each here, all of it counted as"
        f" serial) is {driver_hours(many) * _HOUR:.0f} s of it. With 16 KB batches that is"
        f" {CORES * wall:,.0f} core hours (${CORES * wall * DOLLARS_A_CORE_HOUR:,.0f} at"
        f" ${DOLLARS_A_CORE_HOUR} an hour) and {gets / 1e6:,.0f} million GETs"
        f" (${gets / 1e6 * DOLLARS_A_MILLION_GETS:,.0f} at ${DOLLARS_A_MILLION_GETS} a million)."
        " Reading decides: a core checks CRCs many times faster than it is fed.",
    ]
    if "large" in figures:
        section.lines += ["", _held_against(figures["large"], job, many)]
    if "looks" in figures and "store_looks" in figures:
        section.lines += ["", _first_look(figures["looks"], figures["store_looks"])]
    return section


def _held_against(
    large: Mapping[str, float], job: Mapping[str, float], many: Mapping[str, float]
) -> str:
    """Say how long the largest builds that this machine can do took, and what the model gives."""
    said = []
    fixed = many[f"first {_counts(many, 'first')[0]}"]
    a_gb = 1 / job["scan 16 KB"] + job["tables s a GB 16 KB"]
    for name, size in large.items():
        kind, _, count = name.partition(" ")
        if kind != "bytes":
            continue
        modelled = fixed + size / 1e9 * a_gb + per_segment(many, "first") * int(count)
        took = large[f"first {count}"]
        said.append(
            f"{int(count):,} segments, {size / 1e12:.2f} TB: {took:.1f} s, by the model"
            f" {modelled:.1f} s ({took / modelled:.2f} times as long)"
        )
    return (
        "The largest builds that were run, in a new process each and from the page cache, beside"
        f" the same figures: {fixed:.1f} s that are fixed (the build of the fewest small segments"
        f" above), {a_gb:.3f} s a GB, {per_segment(many, 'first') * 1e3:.2f} ms a segment:"
        f" {'; '.join(said)}."
    )


def _first_look(looks: Mapping[str, float], on_store: Mapping[str, float]) -> str:
    """Say what a first look at all of it takes on one machine, and what it costs."""
    segments = BYTES / SEGMENT_BYTES
    here, cpu = per_segment(looks, "first") * looks["cores"], on_store["cpu"]
    work = (here + cpu) / LOOK_CORES
    requests = on_store["gets"] + on_store["heads"]
    waiting = requests * REQUEST_SECONDS / (LOOKS_AT_ONCE * LOOK_CORES)
    hours = max(work, waiting) * segments / _HOUR
    gets, core_hours = requests * segments, hours * LOOK_CORES
    rate = gets / (hours * _HOUR)
    dollars = core_hours * DOLLARS_A_CORE_HOUR + gets / 1e6 * DOLLARS_A_MILLION_GETS
    return (
        f"A first look (`build --check index`) at the same {segments:,.0f} segments on one machine"
        f" of {LOOK_CORES} cores: {hours * 60:.0f} min. A segment takes"
        f" {here * 1e6:.0f} us of a core for the whole of a build, measured on a disk, and"
        f" {cpu * 1e6:.0f} us for the look on a store, part of which is the same:"
        f" {work * segments:.0f} s of all cores. The store is waited for"
        f" {waiting * segments / 60:.0f} min, with {requests:.1f} requests a segment of"
        f" {REQUEST_SECONDS * 1e3:.0f} ms each and {LOOKS_AT_ONCE} segments at once in each of"
        f" {LOOK_CORES} tasks: {rate:,.0f} requests a second, of which S3 promises"
        f" {REQUESTS_A_PREFIX:,} for each partitioned prefix of a bucket. That is"
        f" {core_hours:.1f} core hours and {gets / 1e6:,.0f} million"
        f" requests, each at the price of a GET: ${dollars:,.2f} in all. They fetch"
        f" {segments * _bytes_of_look(looks) / 1e9:,.0f} GB."
    )


def _bytes_of_look(looks: Mapping[str, float]) -> float:
    most = max(int(name.partition(" ")[2]) for name in looks if name.startswith("bytes "))
    return looks[f"bytes {most}"] / most


def per_segment(many: Mapping[str, float], kind: str) -> float:
    """Give the seconds that one segment more adds, between the two largest runs."""
    less, most = _counts(many, kind)[-2:]
    return (many[f"{kind} {most}"] - many[f"{kind} {less}"]) / (most - less)


def _counts(many: Mapping[str, float], kind: str) -> list[int]:
    return sorted(int(name.partition(" ")[2]) for name in many if name.startswith(f"{kind} "))


def driver_hours(many: Mapping[str, float]) -> float:
    """Give the hours of work that the driver does alone."""
    return per_segment(many, "unchanged") * BYTES / SEGMENT_BYTES / _HOUR


def _entries(batch_bytes: int) -> float:
    """Count the entries of both indexes: one a batch after each interval."""
    apart = max(1, -(-(INDEX_INTERVAL_BYTES + 1) // batch_bytes)) * batch_bytes
    return 2 * BYTES / apart
