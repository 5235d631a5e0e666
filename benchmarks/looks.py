"""First looks at many large segments: files of holes with real ends, batches and index files."""

import os
import shutil
import struct
from pathlib import Path

from sections import SCRATCH, Section, job

from kafka_segments.kafka.index.segment.first_look import draw
from segments import batch

SIZE_BYTES = 1 << 30
_BATCH_BYTES = 16 * 1024
_RECORDS = _BATCH_BYTES // 100
_START_MS = 1_700_000_000_000
_TEMPLATES = 100  # files; the others are links to them, in other partitions


def bench_looks(*, quick: bool) -> Section:
    """Take a first look at growing numbers of segments of 1 GB."""
    counts = (100, 1_000) if quick else (1_000, 10_000, 1_000_000)
    section = Section("First looks at 1,000 to 1,000,000 segments of 1 GB")
    section.lines += [
        "`build --check index` in a new process, session start apart, and once more with nothing"
        f" changed. The segments have index files of {SIZE_BYTES // _BATCH_BYTES:,} entries and"
        " real batches where a first look reads; the rest of each file is a hole.",
        "",
    ]
    columns = ("segments", "TB", "first look s", "us a segment", "read of it", "nothing changed s")
    section.table(*columns, "driver's Python MiB", "its JVM MiB")
    for count in counts:
        folder = SCRATCH / "looks"
        write_segments(folder, count)
        try:
            ran = job(folder, "--once", "--look")
        finally:
            shutil.rmtree(folder)
        if ran["looked_at"] != count:
            raise RuntimeError(f"{ran['looked_at']:.0f} of {count} segments are known by a look")
        section.row(
            f"{count:,}",
            f"{count * SIZE_BYTES / 1e12:,.1f}",
            f"{ran['first']:.1f}",
            f"{ran['first'] / count * 1e6:.0f}",
            f"{ran['bytes'] / count / SIZE_BYTES:.4%}",
            f"{ran['unchanged']:.1f}",
            *(f"{ran[name]:.0f}" for name in ("driver_python_mib", "driver_jvm_mib")),
        )
        section.figures |= {
            f"first {count}": ran["first"],
            f"unchanged {count}": ran["unchanged"],
            f"bytes {count}": ran["bytes"],
        }
    return section


def write_segments(folder: Path, count: int) -> None:
    """Write segments of 1 GB, ``_TEMPLATES`` a partition, which share their files."""
    templates = [folder / "looks-0" / f"{n * _offsets():020d}.log" for n in range(_TEMPLATES)]
    templates[0].parent.mkdir(parents=True)
    for log in templates[:count]:
        _write(log)
    for partition in range(1, -(-count // _TEMPLATES)):
        below = folder / f"looks-{partition}"
        below.mkdir()
        for log in templates[: count - partition * _TEMPLATES]:
            for suffix in (".log", ".index", ".timeindex"):
                os.link(log.with_suffix(suffix), (below / log.name).with_suffix(suffix))


def _offsets() -> int:
    return SIZE_BYTES // _BATCH_BYTES * _RECORDS


def _write(log: Path) -> None:
    """Write a segment whose batches but those that are looked at are holes."""
    base_offset, last = int(log.stem), SIZE_BYTES // _BATCH_BYTES - 1
    drawn = 1 + draw(base_offset, SIZE_BYTES, last - 1)
    with log.open("wb") as file:
        file.truncate(SIZE_BYTES)
        for number in (0, drawn, last):
            made = batch(_BATCH_BYTES, _RECORDS, _START_MS + number)
            file.seek(number * _BATCH_BYTES)
            file.write((base_offset + number * _RECORDS).to_bytes(8, "big") + made[8:])
    ends = [(number + 1) * _RECORDS - 1 for number in range(1, last + 1)]
    positions = (number * _BATCH_BYTES for number in range(1, last + 1))
    with log.with_suffix(".index").open("wb") as file:
        file.write(
            b"".join(struct.pack(">ii", *entry) for entry in zip(ends, positions, strict=True))
        )
    times = (_START_MS + number for number in range(1, last + 1))
    with log.with_suffix(".timeindex").open("wb") as file:
        file.write(b"".join(struct.pack(">qi", *entry) for entry in zip(times, ends, strict=True)))
