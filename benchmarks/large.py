"""Builds of more segments than fit a disk: few files, under the names of many."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sections import GB, SCRATCH, Section, job

from segments import write_segment

BATCH_BYTES = 16 * 1024
_SEGMENT_BYTES = 1 << 30
_FILES = 8  # of one partition; the others are links to them


def bench_large(*, quick: bool) -> Section:
    """Build growing numbers of segments of 1 GB with index files and tables."""
    each = (8 << 20) if quick else _SEGMENT_BYTES
    section = Section("200 GB and 1 TB at once")
    section.lines += [
        f"`build` with index files and tables in a new process, session start apart, and once more"
        f" with nothing changed: segments of {each / GB:.2f} GB in batches of 16 KB, {_FILES} a"
        " partition. The partitions share their files by hard links, so that all is read from the"
        " page cache. The model at the end of this page says what its figures give for these.",
        "",
    ]
    columns = ("segments", "GB", "first build s", "GB/s", "nothing changed s")
    section.table(*columns, "driver's Python MiB", "its JVM MiB", "worker MiB")
    for count in (200, 1_000):
        with log_directory(count, each=each) as folder:
            ran = job(folder, "--once")
        size = count * each
        section.row(
            f"{count:,}",
            f"{size / GB:,.0f}",
            f"{ran['first']:.1f}",
            f"{size / GB / ran['first']:.1f}",
            f"{ran['unchanged']:.1f}",
            *(f"{ran[f'{of}_mib']:.0f}" for of in ("driver_python", "driver_jvm", "worker")),
        )
        section.figures |= {f"first {count}": ran["first"], f"bytes {count}": size}
    return section


@contextmanager
def log_directory(count: int, *, each: int) -> Iterator[Path]:
    """Make a log directory of ``count`` segments of ``each`` bytes; it is removed in the end."""
    folder = SCRATCH / "large"
    records = each // BATCH_BYTES * (BATCH_BYTES // 100)
    files = [folder / "large-0" / f"{number * records:020d}.log" for number in range(_FILES)]
    try:
        for number, file in enumerate(files):
            write_segment(
                file, batch_bytes=BATCH_BYTES, size_bytes=each, first_offset=number * records
            )
        for number in range(_FILES, count):
            link = folder / f"large-{number // _FILES}" / files[number % _FILES].name
            link.parent.mkdir(exist_ok=True)
            os.link(files[number % _FILES], link)
        yield folder
    finally:
        shutil.rmtree(folder)
