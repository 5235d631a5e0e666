"""Two copies of many partitions, compared in full and by digests, beside ``cmp`` of the files."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from sections import GB, SCRATCH, Section

from segments import write_segment

_SEGMENT = f"{0:020d}.log"
_BATCH_BYTES = 16 * 1024


def bench_copies(*, quick: bool) -> Section:
    """Compare 100 GB of partitions that lie on the disk once a copy."""
    each = (16 << 20) if quick else (256 << 20)
    partitions = 20 if quick else 200
    there = 2 * partitions * each
    section = Section("Two copies of a cluster, compared")
    section.lines += [
        f"Two copies of {partitions} partitions, {there / GB:.0f} GB in all, in batches of 16 KB."
        f" The partitions of a copy are links to one file of {each / GB:.2f} GB, so both lie in the"
        " page cache: what is measured is not a disk. `cmp` compares the files in turn on one core."
        " Each run is a new process, from prompt to prompt, the start of its session included."
        " Digests are kept by `build --digests` of each copy. Then one bit of one partition is"
        " flipped in one copy, in a file of its own.",
        "",
    ]
    section.table("run", "seconds", "GB/s", "bytes read", "share of all bytes", "findings")
    folder = SCRATCH / "copies"
    try:
        _write(folder, partitions, each)
        started = time.perf_counter()
        for name in _partitions(folder):
            pair = [folder / copy / name / _SEGMENT for copy in "ab"]
            subprocess.run(["cmp", *pair], check=True)
        _say(section, "`cmp`", time.perf_counter() - started, there, there, 0)
        _run(section, "`divergence`", folder, there)
        for copy in "ab":
            _build(section, folder, copy, there // 2)
        kept = [part for copy in "ab" for part in ("--digests", str(folder / f"wh-{copy}"))]
        _run(section, "with digests, nothing changed", folder, there, *kept)
        _spoil(folder, partitions // 2, each)
        _run(section, "with digests, one file changed", folder, there, *kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return section


def _write(folder: Path, partitions: int, each: int) -> None:
    """Write one segment a copy, the same bytes, and link it into each partition."""
    first = folder / "a.log"
    write_segment(first, batch_bytes=_BATCH_BYTES, size_bytes=each)
    shutil.copy(first, folder / "b.log")
    for copy in "ab":
        for number in range(partitions):
            log = folder / copy / f"bench-{number}"
            log.mkdir(parents=True)
            os.link(folder / f"{copy}.log", log / _SEGMENT)


def _partitions(folder: Path) -> list[str]:
    return sorted(log.name for log in (folder / "a").iterdir())


def _spoil(folder: Path, number: int, each: int) -> None:
    """Give a partition a file of its own, with one bit flipped in its middle."""
    file = folder / "b" / f"bench-{number}" / _SEGMENT
    file.unlink()
    shutil.copy(folder / "b.log", file)
    with file.open("r+b") as stream:
        stream.seek(each // 2 + 100)
        byte = stream.read(1)[0]
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte ^ 1]))


def _build(section: Section, folder: Path, copy: str, there: int) -> None:
    places = ["--source", str(folder / copy), "--warehouse", str(folder / f"wh-{copy}")]
    seconds, _ = _verb("build", *places, "--digests")
    _say(section, f"`build --digests` of copy {copy}", seconds, there, there, 0)


def _run(section: Section, name: str, folder: Path, there: int, *options: str) -> None:
    copies = [part for copy in "ab" for part in ("--copy", f"{copy}={folder / copy}")]
    seconds, told = _verb("divergence", *copies, *options)
    found = re.search(r"findings: (\d+); read .*, ([0-9.]+) % of", told)
    if found is None:
        raise RuntimeError(told[-3000:])
    share = float(found[2])
    section.figures[f"share {name}"] = share
    _say(section, name, seconds, there * share / 100, there, int(found[1]))


def _say(
    section: Section, name: str, seconds: float, read: float, there: int, findings: int
) -> None:
    section.figures[f"seconds {name}"] = seconds
    section.row(
        name,
        f"{seconds:.1f}",
        f"{there / GB / seconds:.1f}",
        f"{read / GB:.2f} GB",
        f"{100 * read / there:.2f} %",
        str(findings),
    )


def _verb(*arguments: str) -> tuple[float, str]:
    """Run a verb in a new process; return its seconds and what it said."""
    program = [sys.executable, "-m", "kafka_segments", *arguments, "--now-ms", "1"]
    started = time.perf_counter()
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-3000:])
    return seconds, done.stderr
