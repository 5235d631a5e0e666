"""Many small segments: from 100 to a million of them, beside Kafka's recovery of each."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from sections import SCRATCH, Section, job, usable_cores

from segments import write_segment
from support.kafka.kafka_referee import Referee

_PARTITIONS = 500
_BATCHES, _BATCH_BYTES = 4, 1024
_MOST_FOR_KAFKA = 10_000


def bench_many(*, quick: bool) -> Section:
    """Build growing numbers of segments of 4 KB."""
    counts = (100, 1_000) if quick else (100, 1_000, 10_000, 100_000)
    return _built("From 100 to 100,000 segments", counts)


def bench_million(*, quick: bool) -> Section:
    """Build a million segments of 4 KB."""
    return _built("A million segments", (2_000 if quick else 1_000_000,))


def _built(title: str, counts: Sequence[int]) -> Section:
    section = Section(title)
    section.lines += [
        f"Segments of 4 KB in up to {_PARTITIONS} partitions, which share their files by hard"
        " links: a first build in a new process, session start apart, one more after it with"
        " nothing changed, and Kafka's `recover()` of the same files on all threads of a warm JVM"
        f" (to {_MOST_FOR_KAFKA:,}: all are open).",
        "",
    ]
    columns = ("segments", "first build s", "ms a segment", "nothing changed s", "Kafka s")
    section.table(*columns, "driver's Python MiB", "its JVM MiB", "worker MiB")
    with Referee() as referee:
        for count in counts:
            files = write_many(SCRATCH / "many", count)
            kafka = "-"
            if count <= _MOST_FOR_KAFKA:
                threads = usable_cores()
                timed = referee.time_recover(files, threads=threads, warmup=1, rounds=2)
                kafka = f"{min(timed['seconds']):.2f}"
            ran = job(SCRATCH / "many", "--once")
            shutil.rmtree(SCRATCH / "many")
            section.row(
                f"{count:,}",
                f"{ran['first']:.1f}",
                f"{ran['first'] / count * 1000:.2f}",
                f"{ran['unchanged']:.1f}",
                kafka,
                *(f"{ran[name]:.0f}" for name in ("driver_python_mib", "driver_jvm_mib")),
                f"{ran['worker_mib']:.0f}",
            )
            section.figures |= {
                f"first {count}": ran["first"],
                f"unchanged {count}": ran["unchanged"],
            }
    return section


def write_many(folder: Path, count: int) -> list[Path]:
    """Write segments of four batches each, one behind the other in their partitions."""
    template = folder / "template.log"
    write_segment(template, batch_bytes=_BATCH_BYTES, size_bytes=_BATCHES * _BATCH_BYTES)
    data = template.read_bytes()
    template.unlink()
    records = _BATCH_BYTES // 100
    files: list[Path] = []
    for number in range(count):
        partition = folder / f"many-{number % _PARTITIONS}"
        partition.mkdir(exist_ok=True)
        base_offset = number // _PARTITIONS * _BATCHES * records
        files.append(partition / f"{base_offset:020d}.log")
        if number % _PARTITIONS:
            os.link(files[number - number % _PARTITIONS], files[-1])
            continue
        moved = b"".join(
            (base_offset + records * i).to_bytes(8, "big")
            + data[_BATCH_BYTES * i + 8 : _BATCH_BYTES * (i + 1)]
            for i in range(_BATCHES)
        )
        files[-1].write_bytes(moved)
    return files
