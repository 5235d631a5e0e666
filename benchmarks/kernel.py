"""One core of ours beside one thread of Kafka's recovery."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numba import njit
from sections import BATCHES, GB, ROUNDS, SCRATCH, Section, best, log_directory, read_only

from kafka_segments.files.storage.files import open_segment, place
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.wire.crc import CRC_START, HAS_CPU_CRC
from kafka_segments.kafka.wire.headers import crc_from, crc_update, magic_at, size_at
from kafka_segments.kafka.wire.native import address_of
from segments import (
    batch,
    idempotent_batch,
    mixed_batch,
    short_transaction_batch,
    transactional_batch,
    v1_message,
    v1_wrapper,
    write_segment,
)
from support.kafka.kafka_referee import Referee

Make = Callable[[int, int, int], bytes]
SHAPES: dict[str, tuple[Make, int]] = {
    **{f"v2, {name}": (idempotent_batch, batch_bytes) for name, batch_bytes in BATCHES.items()},
    **{
        f"v2, {name}, in transactions": (transactional_batch, batch_bytes)
        for name, batch_bytes in BATCHES.items()
    },
    "v2, 100 B, without producer ids": (batch, 100),
    "v1 wrapper, 16 KB": (v1_wrapper, 16 * 1024),
    "v1 message, 1 KB": (v1_message, 1024),
    "v1 message, 100 B": (v1_message, 100),
}
"""Batches v2 are of eight producers in turn: each has an id unless its client asks for none."""
COMMON = "producer ids, eight in turn"
SUMMARIES: dict[str, tuple[Make, int]] = {
    COMMON: (idempotent_batch, 0),
    "no producer ids": (batch, 0),
    **{
        f"producer ids, {name}": (partial(idempotent_batch, producers=producers), 0)
        for name, producers in {"one": 1, "two in turn": 2, "64 in turn": 64}.items()
    },
    "transactions that go on": (transactional_batch, 0),
    "transactions of seven batches and a marker": (short_transaction_batch, 0),
    "another codec in each batch": (mixed_batch, 0),
    "a new leader epoch each 1,000 batches": (idempotent_batch, 1_000),
    "a new leader epoch each 10 batches": (idempotent_batch, 10),
}
"""What a summary has to note beyond the common path: how batches are made, batches an epoch."""


def recover(recoverer: SegmentRecoverer, files: list[Path]) -> None:
    """Recover segments one after another in this process."""
    for file in files:
        with open_segment(place(str(file))) as segment:
            found = recoverer.recover(
                segment.read_into, size_bytes=segment.size_bytes, base_offset=0
            )
        if found.damage is not None:
            raise RuntimeError(f"{file}: {found.damage}")


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _checksums(buffer: np.ndarray, length: int) -> tuple[int, int]:
    """Compute each batch's checksum; return where the last whole batch ends, and all in one."""
    data = address_of(buffer)  # of an array numba would count references for each batch
    at, mixed = 0, np.uint64(0)
    while at + 12 <= length and at + size_at(data, at) <= length:
        end, magic = at + size_at(data, at), magic_at(data, at)
        mixed ^= crc_update(
            data, at + crc_from(magic), end, np.uint64(CRC_START), magic, HAS_CPU_CRC
        )
        at = end
    return at, mixed


def checksums_only(files: list[Path]) -> None:
    """Read files into one buffer and compute the checksum of each batch."""
    buffer = np.zeros(1 << 20, dtype=np.uint8)
    for file in files:
        with file.open("rb", buffering=0) as stream:
            position = 0
            while length := os.preadv(stream.fileno(), [memoryview(buffer)], position):
                position += _checksums(buffer, length)[0]


def _best_in_turn(
    actions: Sequence[Callable[[list[Path]], None]], files: list[Path]
) -> list[float]:
    """Give the seconds of the quickest round of each action on the files, in turn."""
    rounds = [
        [best(lambda a=action: a(files), rounds=1) for action in actions] for _ in range(ROUNDS)
    ]
    return [min(seconds) for seconds in zip(*rounds, strict=True)]


def _first_compilation() -> tuple[float, float]:
    """Give the seconds of a first recovery in a new process, without and with compiled code."""
    code = (
        "import time; t = time.perf_counter()\n"
        "from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer\n"
        "from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions\n"
        "SegmentRecoverer(RecoveryOptions()).recover(lambda p, v: 0, size_bytes=0, base_offset=0)\n"
        "print(time.perf_counter() - t)"
    )
    env = {**os.environ, "NUMBA_CACHE_DIR": str(SCRATCH / "numba")}
    first, second = (
        float(subprocess.check_output([sys.executable, "-c", code], env=env)) for _ in range(2)
    )
    return first, second


def _summaries(section: Section, *, quick: bool) -> None:
    """Compare batches of 100 B that a summary has more to note of, in turn."""
    folder, size = SCRATCH / "summaries", (16 << 20) if quick else (256 << 20)
    recoverer = SegmentRecoverer(RecoveryOptions())
    spans: dict[str, tuple[Path, list[float]]] = {}
    try:
        for number, (name, (make, epoch_batches)) in enumerate(SUMMARIES.items()):
            file = folder / str(number) / f"{0:020d}.log"
            write_segment(
                file, batch_bytes=100, size_bytes=size, make=make, epoch_batches=epoch_batches
            )
            recover(recoverer, [file])
            spans[name] = file, []
        for _ in range(2 * ROUNDS):
            for file, seconds in spans.values():
                seconds.append(best(lambda file=file: recover(recoverer, [file]), rounds=1))
    finally:
        shutil.rmtree(folder)
    batches = size // 100
    section.lines += [
        "",
        f"What the columns of the summary cost: {size / GB:.2f} GB in batches of 100 B, in turn,"
        " the quickest of each.",
        "",
    ]
    section.table("batches with", "GB/s", "ns a batch", "beyond the common path, ns")
    common = min(spans[COMMON][1])
    for name, (_, seconds) in spans.items():
        least = min(seconds)
        section.row(
            name,
            f"{batches * 100 / least / GB:.2f}",
            f"{least / batches * 1e9:.1f}",
            "-" if name == COMMON else f"{(least - common) / batches * 1e9:.1f}",
        )
        section.figures[f"ns {name}"] = least / batches * 1e9


def bench_kernel(*, quick: bool) -> Section:
    """Compare one core of ours with one thread of Kafka's recovery."""
    size = (64 << 20) if quick else (1 << 30)
    section = Section("One core: the kernel against `LogSegment.recover()`")
    section.lines += [
        f"One segment of {size / GB:.2f} GB in the page cache, one thread each, full CRC, default"
        " settings; the quickest round of each. *Checksums alone*: the file read the same way, and"
        " the checksum of each batch compared with nothing; in turn with ours. Batches v2 are of"
        " eight producers in turn, as clients write them since 3.0, unless a row says otherwise.",
        "",
    ]
    section.table(
        *("batches", "Kafka GB/s", "ours GB/s", "ratio", "checksums alone GB/s"),
        *("of these", "reading alone GB/s"),
    )
    recoverer = SegmentRecoverer(RecoveryOptions())
    with Referee() as referee:
        for name, (make, batch_bytes) in SHAPES.items():
            with log_directory(batch_bytes=batch_bytes, files=1, each=size, make=make) as files:
                total = sum(file.stat().st_size for file in files)
                recover(recoverer, files)
                checksums_only(files)
                actions = (checksums_only, partial(recover, recoverer), read_only)
                checksums, ours, limit = _best_in_turn(actions, files)
                rounds = 2 if batch_bytes < 1000 else ROUNDS
                timed = referee.time_recover(files, threads=1, warmup=1, rounds=rounds)
                kafka = min(timed["seconds"])
            section.row(
                name,
                f"{total / kafka / GB:.2f}",
                f"{total / ours / GB:.2f}",
                f"**{kafka / ours:.1f}x**",
                f"{total / checksums / GB:.2f}",
                f"**{checksums / ours:.2f}**",
                f"{total / limit / GB:.1f}",
            )
            section.figures |= {
                f"ours {name}": total / ours / GB,
                f"kafka {name}": total / kafka / GB,
            }
    _summaries(section, quick=quick)
    first, second = _first_compilation()
    section.lines += [
        "",
        f"The first run on a machine compiles: {first:.1f} s in a new process, {second:.1f} s"
        " once the compiled code is cached.",
    ]
    return section
