"""Measure listings and scans on a disk and on an S3 server: a section of docs/benchmarks.md.

Run alone it prints the section; ``--quick`` uses few and small files: to see that it runs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

from pyarrow import fs
from sections import ROOT, SCRATCH, Section, usable_cores
from store_reads import RANGES, WARM, WHATS, Rounds, compare
from store_reads import measured as measured_reads

from kafka_segments.engine.sources.list import list_sources
from kafka_segments.engine.spark.session import spark_session
from kafka_segments.files.folders.walk import find_segments
from segments import write_segment
from support.stores.s3_gateway import PROGRAM, S3Gateway

SERVER = Path(__file__).with_name("s3_server.py")
BUCKET = "bucket"
PAUSE_MS = 50
LINK_BYTES = 1_250_000_000  # 10 Gbit/s
FILES_A_FOLDER = 100
SEGMENTS = 8
ROUNDS = 5
Counts = dict[str, int]


class Cost(NamedTuple):
    """What a measure took: seconds, growth of memory, and what it found."""

    seconds: float
    python_mib: float
    jvm_mib: float
    found: int
    found_bytes: int


def measure_walk(source: str) -> Cost:
    """List a source in this process, as the data source plans a read."""
    before, started = _peak_mib(), time.perf_counter()
    segments = find_segments([source]).segments
    seconds = time.perf_counter() - started
    return Cost(seconds, _peak_mib() - before, 0, len(segments), 0)


def measure_list(source: str) -> Cost:
    """List a source as ``build`` does: in the driver, and from 10,000 files on in the executors."""
    with spark_session("bench", root=ROOT) as spark:
        spark.range(1).mapInArrow(lambda batches: batches, "id long").collect()  # workers are up
        jvm = spark.sparkContext._jvm.ProcessHandle.current().pid()
        before, jvm_before, started = _peak_mib(), _peak_mib(jvm), time.perf_counter()
        with ExitStack() as caches:
            _, loads = list_sources(spark, [source], caches)
        seconds = time.perf_counter() - started
        found = loads["segment"].segments
        return Cost(seconds, _peak_mib() - before, _peak_mib(jvm) - jvm_before, found, 0)


MEASURES = {"walk": measure_walk, "list": measure_list}


def _peak_mib(pid: int | str = "self") -> float:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def request_counts() -> Counts:
    """Give the requests that the server had since it was last asked, by kind."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    if endpoint is None:
        return {}
    with urllib.request.urlopen(f"{endpoint}/?count") as answer:
        counts: Counts = json.load(answer)
    return counts


@contextmanager
def variables(names: dict[str, str]) -> Iterator[None]:
    """Set variables of the environment for this process and those it starts."""
    before = {name: os.environ.get(name) for name in names}
    os.environ |= names
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def s3_server(folder: Path, bytes_a_second: int = 0) -> Iterator[int]:
    """Serve a folder's folders as buckets, to this process and those it starts; gives its id.

    ``bytes_a_second`` of objects leave the server, 0 as many as can.
    """
    command = [sys.executable, str(SERVER), str(folder), str(PAUSE_MS), str(bytes_a_second)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = server.stdout.readline().strip() if server.stdout else ""
            names = {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
                "AWS_ACCESS_KEY_ID": "bench",
                "AWS_SECRET_ACCESS_KEY": "bench",
            }
            with variables(names):
                yield server.pid
        finally:
            server.kill()


def measured(name: str, source: str) -> tuple[Cost, Counts]:
    """Take a measure in a process of its own; gives it and the requests that S3 had."""
    request_counts()
    command = [sys.executable, __file__, "--measure", name, source]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return Cost(*json.loads(answer.stdout.splitlines()[-1])), request_counts()


def bench_stores(*, quick: bool) -> Section:
    """Measure; gives the section."""
    folders, segment_bytes = (50, 2**23) if quick else (1000, 2**30)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as root:
        many, few = Path(root, "here", BUCKET, "many"), Path(root, "here", BUCKET, "few")
        for number in range(folders):
            folder = many / f"topic{number // 10}-{number % 10}"
            folder.mkdir(parents=True)
            for segment in range(FILES_A_FOLDER):
                (folder / f"{segment:020d}.log").touch()
        for number in range(SEGMENTS):
            file = few / f"topic-{number}" / f"{0:020d}.log"
            write_segment(file, batch_bytes=16_384, size_bytes=segment_bytes)
        disk = {name: measured(name, str(many))[0] for name in MEASURES}
        with s3_server(many.parents[1]):
            s3 = {name: measured(name, f"s3://{BUCKET}/many") for name in MEASURES}
        section = Section("Object stores")
        section.say(
            "A server of our own that speaks S3's protocol on the same machine and answers each"
            f" request after {PAUSE_MS} ms, next to the disk under it."
        )
        _listings(section, disk, s3)
        _reads(section, Path(root), rounds=1 if quick else ROUNDS)
    return section


def _listings(section: Section, disk: dict[str, Cost], s3: dict[str, tuple[Cost, Counts]]) -> None:
    files = disk["walk"].found
    folders = files // FILES_A_FOLDER
    section.lines.append("")
    section.say(f"Listing {files:,} segments in {folders:,} partitions' folders:")
    section.lines.append("")
    section.table("listed by", "where", "s", "files/s", "requests", "at once", "memory, MiB")
    told = {"walk": "one process (data source, `audit`)", "list": "`build`, to a DataFrame"}
    for name, by in told.items():
        for where, cost, counts in (("disk", disk[name], {}), ("S3", *s3[name])):
            assert cost.found == files
            memory = f"+{cost.python_mib:.0f}"
            if name == "list":
                memory += f", JVM +{cost.jvm_mib:.0f}"
            requests = [str(counts.get(kind, "-")) for kind in ("LIST", "at once")]
            rate = f"{files / cost.seconds:,.0f}"
            section.row(by, where, f"{cost.seconds:.1f}", rate, *requests, memory)
            section.figures[f"{name} {where} files/s"] = files / cost.seconds


def _reads(section: Section, root: Path, *, rounds: int) -> None:
    """Measure tasks that recover segments, beside plain GETs of the same server."""
    few, source = root / "here" / BUCKET / "few", f"s3://{BUCKET}/few"
    each = next(few.rglob("*.log")).stat().st_size / 2**20
    cores = usable_cores()
    section.lines.append("")
    section.say(
        f"Recovering {SEGMENTS} segments of {each:.0f} MiB in each task, one task and one for each"
        f" of {cores} cores, on the server above, as fast as it can and as a link of 10 Gbit/s lets"
        " it, and on versitygw, which answers at once; beside plain GETs: ranges of 8 MiB of known"
        " objects, fetched by a bare HTTP client into memory that is there already. How many at"
        f" once is taken from a first round with {', '.join(map(str, RANGES))}. Servers and tasks"
        " share the machine, so without a link its cores decide. In turn,"
        f" {rounds} rounds; all figures are of the median round of each."
    )
    section.say(
        "Ours checks each batch's CRC-32C and makes index entries; plain GETs do nothing with what"
        " they fetch. *With CRC-32C*: plain GETs, and one checksum of each range, which no reader"
        " that checks can do without."
    )
    section.lines.append("")
    section.table(
        *("server", "its CPU s/GB", "tasks", "ranges at once", "plain GETs, MB/s", "CPU s/GB"),
        *("with CRC-32C, MB/s", "CPU s/GB", "ours, MB/s", "CPU s/GB", "of plain GETs"),
        *("of those with CRC-32C", "GETs a segment", "HEADs a segment", "MiB a task"),
    )
    links = {f"{PAUSE_MS} ms": 0, f"{PAUSE_MS} ms, 10 Gbit/s": LINK_BYTES}
    for (name, link), tasks in product(links.items(), (1, cores)):
        with s3_server(few.parents[1], link) as pid:
            measured_reads("scan", tasks, 0, source)
            counts = request_counts()
            asked = (SEGMENTS + WARM) * tasks  # some are read before, too
            requests = [f"{counts[kind] / asked:.0f}" for kind in ("GET", "HEAD")]
            cpu, found = _compared(pid, source, tasks, rounds)
            _row_of_reads(section, name, cpu, tasks, found, requests)
    if not PROGRAM.exists():
        section.say("versitygw was not built: `make s3-server`.")
        return
    with S3Gateway(root / "gateway") as gateway, variables(gateway.environment):
        gateway.files.create_dir(BUCKET)
        fs.copy_files(str(few), f"{BUCKET}/few", destination_filesystem=gateway.files)
        for tasks in (1, cores):
            cpu, found = _compared(gateway.pid, source, tasks, rounds)
            _row_of_reads(section, "versitygw", cpu, tasks, found, ["-", "-"])


def _compared(server: int, source: str, tasks: int, rounds: int) -> tuple[float, Rounds]:
    """Compare reads; gives the server's CPU seconds a byte, and what was found."""
    before = _cpu_seconds(server)
    found = compare(source, tasks, rounds)
    first = 1 + WARM / SEGMENTS  # some are read before, too
    return (_cpu_seconds(server) - before) / (found.read_bytes() * first), found


def _cpu_seconds(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _row_of_reads(
    section: Section, server: str, cpu: float, tasks: int, found: Rounds, requests: list[str]
) -> None:
    costs = [found.median(what) for what in WHATS]
    ratios = [found.ratio(what) for what in WHATS[:-1]]
    section.row(
        *(server, f"{cpu * 1e9:.2f}", str(tasks), str(found.at_once)),
        *(
            text
            for cost in costs
            for text in (
                f"{cost.rate / 1e6:,.0f}",
                f"{cost.cpu_seconds / cost.found_bytes * 1e9:.2f}",
            )
        ),
        *(f"**{ratio:.2f}**" for ratio in ratios),
        *requests,
        f"{costs[-1].mib:.0f}",
    )
    section.figures[f"{server} {tasks} ratio"] = ratios[0]


def main() -> None:
    """Print the section, or one measure as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--measure", nargs=2, metavar=("NAME", "SOURCE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        name, source = given.measure
        print(json.dumps(MEASURES[name](source)))
        return
    print("\n".join(bench_stores(quick=given.quick).lines))


if __name__ == "__main__":
    main()
