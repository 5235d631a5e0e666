"""Measure what a recovery's parts cost on this machine and disk.

Kafka's own code is not run. What it takes for 1 to 3 is a constant times what our code takes.

1. A byte: our own compiled recovery, in memory.
2. A batch: two small reads from the page cache, as Kafka makes.
3. A file of the log's folder, looked at: its status, by its name.
4. A segment: the changes that Kafka's recovery of one makes on the disk. Its two index files are
   enlarged to their full size, mapped, and cut to their entries again, and a snapshot is forced to
   the disk. All earlier snapshots are removed before that.

The first three are the CPU time of one thread, which other processes disturb little.
"""

import mmap
import os
import shutil
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from kafka_segments.errors import UsageError
from kafka_segments.files.storage.durable_files import sync_folder
from kafka_segments.files.storage.scratch import scratch_below
from kafka_segments.kafka.broker_rules.start.log_start import OFFSET_INDEX_BYTES, TIME_INDEX_BYTES
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.text.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.crc import HAS_CPU_CRC, crc32c
from kafka_segments.verbs.change.recovery.forecast.decide.times import Costs

KAFKAS_BYTE, KAFKAS_BATCH, KAFKAS_FILE = 5.3, 1.33, 1.05
"""By which factor Kafka takes longer than our code for a byte, a batch, and a file."""
_BATCH_BYTES = 16_384
_MEASURED_BYTES = 16 * 1024 * 1024
_READ_AT_ONCE = (17, 200)  # bytes of a header, and of a batch with it
_READS, _FILES = 2000, 400
_ROUNDS = 100  # short ones: the quickest of many is one that nothing disturbed
_DISK_ROUNDS = 3
_THREADS = (1, 2, 4, 8)
_SEGMENTS, _LEAST_SEGMENTS = 48, 12  # of all threads together, of each
_FULL_BYTES = {OFFSET_INDEX_SUFFIX: OFFSET_INDEX_BYTES, TIME_INDEX_SUFFIX: TIME_INDEX_BYTES}
_INDEX_BYTES, _SNAPSHOT_BYTES = 2048, 102
_READ_BYTES = 16 * 1024 * 1024
_MOST_READ_BYTES = 512 * 1024 * 1024
_ERROR = 0.3


def calibrate(folder: Path, costs: Costs) -> Costs:
    """Return the costs as measured on this machine, and on the disk of ``folder``.

    Files of some MiB are made in a folder of their own below, and removed.

    Raises:
        UsageError: the folder is not there or cannot be written to.
    """
    byte_ns = _byte_ns()
    try:
        with scratch_below(folder) as scratch:
            batch_ns, file_ns = _batch_ns(scratch), _file_ns(scratch)
            segment_ms = _quickest_segments(scratch)
    except OSError as error:
        raise UsageError(f"--calibrate {folder}: {error.strerror or error}") from None
    return replace(
        costs,
        batch_us=batch_ns * KAFKAS_BATCH / 1e3,
        byte_ns=byte_ns * KAFKAS_BYTE,
        file_us=file_ns * KAFKAS_FILE / 1e3,
        segment_ms=segment_ms,
        error=_ERROR,
        is_calibrated=True,
    )


def _byte_ns() -> float:
    """Return how many ns our own recovery takes for a byte; the first round compiles."""
    recoverer = SegmentRecoverer(RecoveryOptions(by_instruction=HAS_CPU_CRC))
    view = memoryview(_batches(_BATCH_BYTES, _MEASURED_BYTES // _BATCH_BYTES)).cast("B")

    def read_into(position: int, target: memoryview) -> int:
        part = view[position : position + len(target)]
        target[: len(part)] = part
        return len(part)

    def recover() -> None:
        recoverer.recover(read_into, size_bytes=len(view), base_offset=0)

    recover()
    return _quickest_ns(recover) / len(view)


def _batch_ns(scratch: Path) -> float:
    """Return how many ns the two reads of a small batch take."""
    header, whole = _READ_AT_ONCE
    path = scratch / "batches"
    path.write_bytes(bytes(_READS * whole))
    file = os.open(path, os.O_RDONLY)

    def read() -> None:
        for position in range(0, _READS * whole, whole):
            os.pread(file, header, position)
            os.pread(file, whole, position)

    try:
        return _quickest_ns(read) / _READS
    finally:
        os.close(file)


def _file_ns(scratch: Path) -> float:
    """Return how many ns it takes to look at one file of a folder."""
    folder = scratch / "files"
    folder.mkdir()
    for number in range(_FILES):
        (folder / f"{number:020d}.index").touch()

    def look() -> None:
        with os.scandir(folder) as entries:
            for entry in entries:
                entry.stat()

    return _quickest_ns(look) / _FILES


def _quickest_ns(act: Callable[[], object]) -> int:
    """Return the least CPU time, in ns, that this thread took to act; the least of many rounds."""

    def round_ns() -> int:
        start = time.thread_time_ns()
        act()
        return time.thread_time_ns() - start

    return min(round_ns() for _ in range(_ROUNDS))


def _batches(size_bytes: int, count: int) -> np.ndarray:
    """Return batches v2 of one size, a row each."""
    one = np.zeros(size_bytes, dtype=np.uint8)

    def put(at: int, value: int, width: int) -> None:
        one[at : at + width] = list(value.to_bytes(width, "big", signed=value < 0))

    put(layout.LENGTH, size_bytes - layout.LOG_OVERHEAD, 4)
    put(layout.MAGIC, 2, 1)
    for at, width in ((layout.PRODUCER_ID, 8), (layout.PRODUCER_EPOCH, 2)):
        put(at, -1, width)
    put(layout.BASE_SEQUENCE, -1, 4)
    put(layout.RECORD_COUNT, 1, 4)
    put(layout.CRC, crc32c(one[layout.CRC_FROM :].tobytes()), 4)
    rows = np.tile(one, (count, 1))
    rows[:, :8] = np.arange(count, dtype=">i8").view(np.uint8).reshape(count, 8)
    return rows


def _quickest_segments(scratch: Path) -> dict[int, float]:
    """Return how many ms a segment's changes take a thread at least, by the number of threads.

    Fewer threads are never slower: where more of them were measured as quicker, that counts.
    """
    least = {
        threads: min(_segment_ms(scratch, threads) for _ in range(_DISK_ROUNDS))
        for threads in _THREADS
    }
    return {threads: min(least[more] for more in _THREADS if more >= threads) for threads in least}


def _segment_ms(scratch: Path, threads: int) -> float:
    """Return how many ms a segment's changes take each of so many threads, on the disk."""
    each = max(_LEAST_SEGMENTS, _SEGMENTS // threads)
    folders = [scratch / f"{threads}-{number}" for number in range(threads)]
    for folder in folders:
        _make_segments(folder, each)
    with ThreadPoolExecutor(threads) as pool:
        seconds = sum(pool.map(partial(_change_segments, each), folders))
    for folder in folders:
        shutil.rmtree(folder)
    return seconds * 1e3 / (each * threads)


def _make_segments(folder: Path, count: int) -> None:
    """Make the files that a broker leaves of so many segments, and sync their folder."""
    folder.mkdir()
    for number in range(count):
        for suffix in (*_FULL_BYTES, ".snapshot"):
            (folder / f"{number}{suffix}").write_bytes(bytes(_INDEX_BYTES))
    sync_folder(folder)


def _change_segments(count: int, folder: Path) -> float:
    """Make the changes of so many segments; return the seconds that they took.

    Index files that were mapped stay mapped until the end, as in a JVM.
    """
    with ExitStack() as mapped:
        start = time.perf_counter()
        for number in range(count):
            (folder / f"{number}.snapshot").unlink()
        for number in range(count):
            for suffix, size in _FULL_BYTES.items():
                mapped.enter_context(_rewritten(folder / f"{number}{suffix}", size))
            with open(folder / f"{number}.snapshot", "wb") as snapshot:
                snapshot.write(bytes(_SNAPSHOT_BYTES))
                snapshot.flush()
                os.fsync(snapshot.fileno())
        return time.perf_counter() - start


def _rewritten(path: Path, full_bytes: int) -> mmap.mmap:
    with open(path, "r+b") as file:
        file.truncate(full_bytes)
        mapped = mmap.mmap(file.fileno(), full_bytes)
        mapped[:_INDEX_BYTES] = bytes(_INDEX_BYTES)
        file.truncate(_INDEX_BYTES)
    return mapped


def read_bytes_per_s(files: Iterable[Path]) -> float | None:
    """Return how many bytes a second the disk reads past the page cache; None: it cannot do so.

    The files are read from their beginning on, up to 512 MiB in all.
    """
    buffer = mmap.mmap(-1, _READ_BYTES)  # aligned, as such a read asks for
    read, start = 0, time.perf_counter()
    for path in files:
        try:
            file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        except (OSError, AttributeError):
            continue
        try:
            while read < _MOST_READ_BYTES and (got := os.readv(file, [buffer])) == _READ_BYTES:
                read += got
        except OSError:
            continue
        finally:
            os.close(file)
    taken = time.perf_counter() - start
    return read / taken if read else None
