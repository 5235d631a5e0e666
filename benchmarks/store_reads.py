"""Measure how fast tasks recover segments of an S3 server, beside plain parallel GETs.

``python store_reads.py WHAT TASKS RANGES SOURCE``: WHAT is ``scan``, as a build's tasks do, or
``gets``: as many ranges at once as RANGES says are fetched by a bare HTTP client into memory that
is there already, of objects whose sizes are known, and nothing is done with them; or ``checked``:
the same, and the CRC-32C of each range is computed. Each task is a process and reads all of the
source. Prints a JSON object: bytes, seconds, CPU seconds of the tasks, and the most memory that one
of them took, in MiB.
"""

import http.client
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from queue import SimpleQueue
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numba import njit

from kafka_segments.files.folders.walk import ListedSegment, find_segments
from kafka_segments.files.storage.s3_ranges import S3Bucket
from kafka_segments.files.storage.uris import split_uri
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.wire.crc import CRC_START, HAS_CPU_CRC
from kafka_segments.kafka.wire.header_layout import MAGIC_V2
from kafka_segments.kafka.wire.headers import crc_update
from kafka_segments.verbs.scan.scanner import ScanOptions, SegmentScanner, in_turn

RANGE_BYTES = 8 * 1024 * 1024
RANGES = (4, 8, 16, 32)
WHATS = ("gets", "checked", "scan")
WARM = 2  # segments that are read first
_CONNECT_SECONDS = 60


@dataclass(frozen=True)
class Cost:
    """What reading took; ``found_bytes`` by all tasks, ``mib`` by the largest."""

    found_bytes: int
    seconds: float
    cpu_seconds: float
    mib: float

    @property
    def rate(self) -> float:
        """Bytes a second."""
        return self.found_bytes / self.seconds


Span = tuple[float, float, float, float, int]
"""A task's start and end on the machine's clock, its CPU seconds, MiB and bytes."""


class Rounds(NamedTuple):
    """What was measured in turn: ``costs`` of each of ``WHATS``, round after round.

    ``at_once`` is how many ranges at once brought the most of plain GETs in a round before them;
    ``tried`` are the costs of that round.
    """

    at_once: int
    tried: list[Cost]
    costs: dict[str, list[Cost]]

    def read_bytes(self) -> int:
        """What all measures read, without what they read first."""
        costs = [*self.tried, *(cost for costs in self.costs.values() for cost in costs)]
        return sum(cost.found_bytes for cost in costs)

    def median(self, what: str) -> Cost:
        """The measure whose bytes a second are the median."""
        ordered = sorted(self.costs[what], key=lambda cost: cost.rate)
        return ordered[len(ordered) // 2]

    def ratio(self, what: str) -> float:
        """The median of scans beside that of another measure."""
        return self.median("scan").rate / self.median(what).rate


def scan(segments: list[ListedSegment]) -> None:
    """Recover segments as a task of a build does."""
    scanner = SegmentScanner(ScanOptions(RecoveryOptions(), None))
    scanner.announce((found.source, found.relative_path, found.name) for found in segments)
    begun = (
        scanner.begin(found.source, found.relative_path, found.name, found.base_offset)
        for found in segments
    )
    for scanned in in_turn(begun):
        assert scanned.damage is None, scanned.damage
    scanner.close()


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _checksum(data: np.ndarray, length: int) -> Any:
    return crc_update(data, 0, length, np.uint64(CRC_START), MAGIC_V2, HAS_CPU_CRC)


def ignore(_: np.ndarray, __: int) -> None:
    """Do nothing with a range."""


def get_ranges(
    segments: list[ListedSegment],
    urls: list[str],
    at_once: int,
    use: Callable[[np.ndarray, int], Any],
) -> None:
    """Fetch all ranges of segments, so many at once; ``use`` gets the memory and length of each."""
    free: SimpleQueue[tuple[http.client.HTTPConnection, memoryview]] = SimpleQueue()
    for _ in range(at_once):
        connection = http.client.HTTPConnection(urlsplit(urls[0]).netloc, timeout=_CONNECT_SECONDS)
        free.put((connection, memoryview(bytearray(RANGE_BYTES))))

    def get(asked: tuple[str, int, int]) -> None:
        url, start, length = asked
        connection, buffer = free.get()
        parts = urlsplit(url)
        wanted = {"Range": f"bytes={start}-{start + length - 1}"}
        connection.request("GET", f"{parts.path}?{parts.query}", headers=wanted)
        answer = connection.getresponse()
        assert answer.status == 206, answer.status
        filled = 0
        while filled < length:
            read = answer.readinto(buffer[filled:length])
            assert read
            filled += read
        use(np.frombuffer(buffer, np.uint8), length)
        free.put((connection, buffer))

    ranges = [
        (url, start, min(RANGE_BYTES, found.size_bytes - start))
        for found, url in zip(segments, urls, strict=True)
        for start in range(0, found.size_bytes, RANGE_BYTES)
    ]
    with ThreadPoolExecutor(at_once) as pool:
        for _ in pool.map(get, ranges):
            pass


def _task(
    what: str, at_once: int, source: str, ready: Barrier, spans: "multiprocessing.Queue[Span]"
) -> None:
    segments = find_segments([source]).segments
    _, bucket, _ = split_uri(source)
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    signer = S3Bucket(bucket, region="us-east-1", endpoint=endpoint)
    prefix = f"s3://{bucket}/"
    urls = [signer.signed_url(found.path.removeprefix(prefix)) for found in segments]

    def read(count: int) -> None:
        if what == "scan":
            scan(segments[:count])
        else:
            use = _checksum if what == "checked" else ignore
            get_ranges(segments[:count], urls[:count], at_once, use)

    read(WARM)  # compiles, opens connections, finds how many ranges at once
    ready.wait()
    cpu, started = time.process_time(), time.monotonic()
    read(len(segments))
    ended = time.monotonic()
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = sum(found.size_bytes for found in segments)
    spans.put((started, ended, time.process_time() - cpu, mib, size))


def run_tasks(what: str, tasks: int, at_once: int, source: str) -> Cost:
    """Read a source by some tasks that begin together."""
    context = multiprocessing.get_context("spawn")
    ready, spans = context.Barrier(tasks), context.Queue()
    processes = [
        context.Process(target=_task, args=(what, at_once, source, ready, spans))
        for _ in range(tasks)
    ]
    for process in processes:
        process.start()
    found = [spans.get() for _ in processes]
    for process in processes:
        process.join()
    started, ended, cpu, mib, size = zip(*found, strict=True)
    return Cost(sum(size), max(ended) - min(started), sum(cpu), max(mib))


def measured(what: str, tasks: int, at_once: int, source: str) -> Cost:
    """Read a source in processes of their own."""
    command = [sys.executable, __file__, what, str(tasks), str(at_once), source]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return Cost(*json.loads(answer.stdout.splitlines()[-1]))


def compare(source: str, tasks: int, rounds: int) -> Rounds:
    """Measure plain GETs, the same with checksums, and scans, in turn."""
    tried = {at_once: measured("gets", tasks, at_once, source) for at_once in RANGES}
    best = max(tried, key=lambda at_once: tried[at_once].rate)
    found = Rounds(best, list(tried.values()), {what: [] for what in WHATS})
    for _ in range(rounds):
        for what, costs in found.costs.items():
            costs.append(measured(what, tasks, best, source))
    return found


def main() -> None:
    """Print one measure."""
    what, tasks, at_once, source = sys.argv[1:]
    cost = run_tasks(what, int(tasks), int(at_once), source)
    print(json.dumps([cost.found_bytes, cost.seconds, cost.cpu_seconds, cost.mib]))


if __name__ == "__main__":
    main()
