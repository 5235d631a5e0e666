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
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from sections import ROOT, SCRATCH, Section

from kafka_segments.index.recovery import RecoveryOptions, SegmentRecoverer
from kafka_segments.sources.list import list_sources
from kafka_segments.sources.walk import find_segments
from kafka_segments.spark.session import spark_session
from kafka_segments.storage.files import open_segment, place
from kafka_segments.storage.read_ahead import LARGEST_READ_BYTES
from segments import write_segment

SERVER = Path(__file__).with_name("s3_server.py")
BUCKET = "bucket"
PAUSE_MS = 50
FILES_A_FOLDER = 100
SEGMENTS = 4
RANGES_AT_ONCE = 16
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


def measure_scan(source: str) -> Cost:
    """Recover every segment of a source, one after another."""
    recoverer = SegmentRecoverer(RecoveryOptions())
    segments = find_segments([source]).segments
    spans: list[float] = []
    for round_ in range(2):  # the first compiles
        before, started = _peak_mib(), time.perf_counter()
        for segment in segments if round_ else segments[:1]:
            with open_segment(place(segment.path)) as opened:
                found = recoverer.recover(
                    opened.read_into,
                    size_bytes=opened.size_bytes,
                    base_offset=segment.base_offset,
                )
                opened.check_unchanged()
            assert found.damage is None
        spans.append(time.perf_counter() - started)
        if not round_:
            _counts()
    total = sum(segment.size_bytes for segment in segments)
    return Cost(spans[-1], _peak_mib() - before, 0, len(segments), total)


def measure_read(source: str) -> Cost:
    """Read the same segments through Arrow, many ranges at once, and do nothing with them."""
    segments = find_segments([source]).segments
    before, started = _peak_mib(), time.perf_counter()
    with ThreadPoolExecutor(RANGES_AT_ONCE) as pool:
        for segment in segments:
            log = place(segment.path)
            with log.filesystem.open_input_file(log.path) as stream:
                positions = range(0, segment.size_bytes, LARGEST_READ_BYTES)
                read = pool.map(partial(_read_and_drop, stream), positions)
                assert sum(read) == segment.size_bytes
    seconds = time.perf_counter() - started
    total = sum(segment.size_bytes for segment in segments)
    return Cost(seconds, _peak_mib() - before, 0, len(segments), total)


def _read_and_drop(stream: pa.NativeFile, position: int) -> int:
    return len(stream.read_at(LARGEST_READ_BYTES, position))


MEASURES = {
    "walk": measure_walk,
    "list": measure_list,
    "scan": measure_scan,
    "read": measure_read,
}


def _peak_mib(pid: int | str = "self") -> float:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def _counts() -> Counts:
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    if endpoint is None:
        return {}
    with urllib.request.urlopen(f"{endpoint}/?count") as answer:
        counts: Counts = json.load(answer)
    return counts


@contextmanager
def s3_server(folder: Path) -> Iterator[None]:
    """Serve a folder's folders as buckets, to this process and those it starts."""
    command = [sys.executable, str(SERVER), str(folder), str(PAUSE_MS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = server.stdout.readline().strip() if server.stdout else ""
            os.environ |= {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
                "AWS_ACCESS_KEY_ID": "bench",
                "AWS_SECRET_ACCESS_KEY": "bench",
            }
            yield
        finally:
            del os.environ["AWS_ENDPOINT_URL"]
            server.kill()


def measured(name: str, source: str) -> tuple[Cost, Counts]:
    """Take a measure in a process of its own; gives it and the requests that S3 had."""
    _counts()
    command = [sys.executable, __file__, "--measure", name, source]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return Cost(*json.loads(answer.stdout.splitlines()[-1])), _counts()


def bench_stores(*, quick: bool) -> Section:
    """Measure; gives the section."""
    folders, segment_bytes = (50, 2**23) if quick else (1000, 2**28)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as root:
        many, few = Path(root, BUCKET, "many"), Path(root, BUCKET, "few")
        for number in range(folders):
            folder = many / f"topic{number // 10}-{number % 10}"
            folder.mkdir(parents=True)
            for segment in range(FILES_A_FOLDER):
                (folder / f"{segment:020d}.log").touch()
        for number in range(SEGMENTS):
            file = few / f"topic-{number}" / f"{0:020d}.log"
            write_segment(file, batch_bytes=16_384, size_bytes=segment_bytes)
        of = {name: "many" if name in ("walk", "list") else "few" for name in MEASURES}
        disk = {name: measured(name, f"{root}/{BUCKET}/{of[name]}")[0] for name in MEASURES}
        with s3_server(Path(root)):
            s3 = {name: measured(name, f"s3://{BUCKET}/{of[name]}") for name in MEASURES}
    section = Section("Object stores")
    section.say(
        "A server of our own that speaks S3's protocol on the same machine and answers each request"
        f" after {PAUSE_MS} ms, next to the disk under it."
    )
    _listings(section, disk, s3)
    _scans(section, disk["scan"], *s3["scan"], s3["read"][0])
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


def _scans(section: Section, disk: Cost, s3: Cost, counts: Counts, limit: Cost) -> None:
    size = s3.found_bytes / s3.found / 2**20
    section.lines.append("")
    section.say(
        f"Recovering {s3.found} segments of {size:.0f} MiB one after another in one process, as a"
        " task does (the disk's from the page cache):"
    )
    section.lines.append("")
    section.table("where", "s", "MB/s", "GETs a segment", "HEADs a segment", "memory, MiB")
    for where, cost in (("disk", disk), ("S3", s3)):
        is_s3 = where == "S3"
        requests = [f"{counts[kind] / s3.found:.0f}" if is_s3 else "-" for kind in ("GET", "HEAD")]
        rate = cost.found_bytes / 1e6 / cost.seconds
        memory = f"+{cost.python_mib:.0f}"
        section.row(where, f"{cost.seconds:.2f}", f"{rate:,.0f}", *requests, memory)
        section.figures[f"scan {where} MB/s"] = rate
    rate = limit.found_bytes / 1e6 / limit.seconds
    section.row(
        f"S3, {RANGES_AT_ONCE} ranges at once read alone",
        f"{limit.seconds:.2f}",
        f"{rate:,.0f}",
        "-",
        "-",
        f"+{limit.python_mib:.0f}",
    )


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
