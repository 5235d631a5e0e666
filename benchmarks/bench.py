"""Measure against Kafka's own recovery, on the same files in one run; writes docs/benchmarks.md.

``--quick`` uses small files: to see that it runs, not to publish.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from decisions import bench_decisions
from queries import bench_queries
from search import QUICK, WHOLE, bench_search
from segments import batch, v1_message, v1_wrapper, write_segment

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from kafka_referee import Referee  # noqa: E402
from kafka_segments.index.recovery import RecoveryOptions, SegmentRecoverer  # noqa: E402
from kafka_segments.storage.files import open_segment, place  # noqa: E402

GB = 1e9
ROUNDS = 5
BATCHES = {"16 KB": 16 * 1024, "1 KB": 1024, "100 B": 100}
SHAPES: dict[str, tuple[Callable[[int, int, int], bytes], int]] = {
    **{f"v2, {name}": (batch, batch_bytes) for name, batch_bytes in BATCHES.items()},
    "v1 wrapper, 16 KB": (v1_wrapper, 16 * 1024),
    "v1 message, 1 KB": (v1_message, 1024),
    "v1 message, 100 B": (v1_message, 100),
}


def best(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Give the seconds of the quickest round."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def recover(recoverer: SegmentRecoverer, files: list[Path]) -> None:
    """Recover segments one after another in this process."""
    for file in files:
        with open_segment(place(str(file))) as segment:
            found = recoverer.recover(
                segment.read_into, size_bytes=segment.size_bytes, base_offset=0
            )
        if found.damage is not None:
            raise RuntimeError(f"{file}: {found.damage}")


def read_only(files: list[Path]) -> None:
    """Read files into one buffer and do nothing with them: the machine's limit."""
    buffer = memoryview(bytearray(1 << 20))
    for file in files:
        with file.open("rb", buffering=0) as stream:
            while stream.readinto(buffer):
                pass


def drop_from_cache(files: list[Path]) -> None:
    """Make the next read come from the disk."""
    for file in files:
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def log_directory(
    folder: Path,
    *,
    batch_bytes: int,
    files: int,
    each: int,
    make: Callable[[int, int, int], bytes] = batch,
) -> Iterator[list[Path]]:
    """Make a log directory of ``files`` partitions with one segment each; removed in the end."""
    made = []
    for number in range(files):
        made.append(folder / f"bench-{number}" / f"{0:020d}.log")
        write_segment(made[-1], batch_bytes=batch_bytes, size_bytes=each, make=make)
    try:
        yield made
    finally:
        shutil.rmtree(folder)


def in_own_process(*arguments: object) -> dict[str, float]:
    """Run ``benchmarks/job.py`` in a new process; gives the figures that it prints."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "job.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT / "build",
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return dict(json.loads(done.stdout.splitlines()[-1]))


def first_compilation(folder: Path) -> tuple[float, float]:
    """Give the seconds of a first recovery in a new process, without and with compiled code."""
    code = (
        "import time; t = time.perf_counter()\n"
        "from kafka_segments.index.recovery import RecoveryOptions, SegmentRecoverer\n"
        "SegmentRecoverer(RecoveryOptions()).recover(lambda p, v: 0, size_bytes=0, base_offset=0)\n"
        "print(time.perf_counter() - t)"
    )
    env = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    first, second = (
        float(subprocess.check_output([sys.executable, "-c", code], env=env)) for _ in range(2)
    )
    return first, second


def machine() -> str:
    """Say what this machine is."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, {platform.platform()}"


def bench_kernel(referee: Referee, folder: Path, size: int, report: list[str]) -> None:
    """Compare one core of ours with one thread of Kafka's."""
    report += [
        "## One core: the kernel against `LogSegment.recover()`",
        "",
        f"One segment of {size / GB:.2f} GB in the page cache, one thread each, full CRC, default"
        " settings; the quickest round of each.",
        "",
        "| batches | Kafka GB/s | ours GB/s | ratio | reading alone GB/s |",
        "|---|---|---|---|---|",
    ]
    recoverer = SegmentRecoverer(RecoveryOptions())
    for name, (make, batch_bytes) in SHAPES.items():
        with log_directory(folder, batch_bytes=batch_bytes, files=1, each=size, make=make) as files:
            total = sum(file.stat().st_size for file in files)
            recover(recoverer, files)
            ours = best(lambda files=files: recover(recoverer, files))
            limit = best(lambda files=files: read_only(files))
            rounds = 2 if batch_bytes < 1000 else ROUNDS
            kafka = min(referee.time_recover(files, threads=1, warmup=1, rounds=rounds)["seconds"])
        report.append(
            f"| {name} | {total / kafka / GB:.2f} | {total / ours / GB:.2f} |"
            f" **{kafka / ours:.1f}x** | {total / limit / GB:.1f} |"
        )
        print(report[-1], flush=True)
    report.append("")


def bench_job(referee: Referee, folder: Path, size: int, report: list[str]) -> None:
    """Compare the whole Spark job with Kafka's recovery on as many threads."""
    threads = os.cpu_count() or 2
    files_count = 8
    report += [
        "## The whole Spark job against `LogSegment.recover()` alone",
        "",
        f"{files_count} segments, {size / GB:.2f} GB in all, in the page cache; {threads} threads"
        " of a warm JVM there, `local[*]` here; session start apart. *Scan job*: list, pack,"
        " recover, write the index files, rows back. *Build*: that and eight Delta commits. Warm:"
        " best of three builds into a new warehouse each, after one that warmed the JVM up.",
        "",
        "| batches | Kafka s | scan job s | ratio | build s | ratio | first build in a new"
        " process s | nothing changed s | worker peak MiB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, batch_bytes in BATCHES.items():
        each = size // files_count
        with log_directory(folder, batch_bytes=batch_bytes, files=files_count, each=each) as files:
            rounds = 1 if batch_bytes < 1000 else ROUNDS
            kafka = min(
                referee.time_recover(
                    files, threads=threads, warmup=min(1, rounds - 1), rounds=rounds
                )["seconds"]
            )
            job = in_own_process(folder, folder.parent / "job")
            if name == "16 KB":
                drop_from_cache(files)
                cold = best(lambda files=files: read_only(files), rounds=1)
                total = sum(file.stat().st_size for file in files)
                report_cold = f"Reading from the disk alone: {total / cold / GB:.2f} GB/s."
        report.append(
            f"| {name} | {kafka:.2f} | {job['scan']:.2f} | **{kafka / job['scan']:.1f}x** |"
            f" {job['build']:.2f} | {kafka / job['build']:.1f}x | {job['first']:.1f} |"
            f" {job['unchanged']:.2f} | {job['worker_mib']:.0f} |"
        )
        print(report[-1], flush=True)
    report += [
        "",
        f"{report_cold} Session start: {job['session']:.1f} s. The fixed cost of a warm build"
        f" is about {job['fixed']:.1f} s (one segment of 100 bytes).",
        "",
    ]


def bench_many(folder: Path, segments: int, report: list[str]) -> None:
    """Build over many small segments in one tree."""
    partitions = 500
    template = folder / "template.log"
    write_segment(template, batch_bytes=1024, size_bytes=4096)
    data = template.read_bytes()
    template.unlink()
    for number in range(segments):
        partition = folder / f"many-{number % partitions}"
        partition.mkdir(parents=True, exist_ok=True)
        base_offset = number // partitions * 40
        moved = b"".join(
            (base_offset + 10 * i).to_bytes(8, "big") + data[1024 * i + 8 : 1024 * (i + 1)]
            for i in range(4)
        )
        (partition / f"{base_offset:020d}.log").write_bytes(moved)
    job = in_own_process(folder, folder.parent / "job", "--once")
    report += [
        "## Many small segments",
        "",
        f"{segments} segments of 4 KB in {partitions} partitions: first build in a new process"
        f" {job['first']:.1f} s with {job['tasks']:.0f} scan tasks; driver's Python peak"
        f" {job['driver_python_mib']:.0f} MiB, its JVM {job['driver_jvm_mib']:.0f} MiB, worker"
        f" {job['worker_mib']:.0f} MiB; nothing changed: {job['unchanged']:.1f} s.",
        "",
    ]
    print(report[-2], flush=True)
    shutil.rmtree(folder)


def main() -> None:
    """Run all and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    kernel_size, job_size, many = (
        (64 << 20, 256 << 20, 2_000) if quick else (1 << 30, 8 << 30, 50_000)
    )
    folder = ROOT / "build" / "bench"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    report = ["# Benchmarks", "", f"`make bench` on {machine()}.", ""]
    first, second = first_compilation(folder / "numba")
    with Referee() as referee:
        bench_kernel(referee, folder / "kernel", kernel_size, report)
        report += [
            f"The first run on a machine compiles: {first:.1f} s in a new process, {second:.1f} s"
            " once the compiled code is cached.",
            "",
        ]
        bench_job(referee, folder / "logs", job_size, report)
    bench_many(folder / "many", many, report)
    shutil.rmtree(folder)
    report += bench_decisions(most=50_000 if quick else 5_000_000)
    report += bench_queries(count=50_000 if quick else 5_000_000)
    report += bench_search(QUICK if quick else WHOLE)
    target = ROOT / "build" / "benchmarks.md" if quick else ROOT / "docs" / "benchmarks.md"
    target.write_text("\n".join(report), "utf-8")
    print(f"written: {target}")


if __name__ == "__main__":
    main()
