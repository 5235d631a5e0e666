"""Make a kit: read the segments in threads or on Spark, fold each log, write the manifest last."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local
from typing import NamedTuple

from kafka_segments.errors import UsageError
from kafka_segments.files.storage.threads import map_ahead
from kafka_segments.verbs.change.recovery.kit.fold import FoldSettings, fold_log
from kafka_segments.verbs.change.recovery.kit.listing import KitWork
from kafka_segments.verbs.change.recovery.kit.plan import KitSegment, LogPlan
from kafka_segments.verbs.change.recovery.kit.scan import KitScanner, ScannedSegment
from kafka_segments.verbs.change.recovery.kit_manifest import (
    KitManifest,
    KitState,
    LogKit,
    folder_of,
    write_kit,
    write_log,
)

_BYTES_A_SECOND = 2_000_000_000  # that one thread reads and folds
_SEGMENT_SECONDS = 0.001  # of Python for each segment, by one thread at a time
_SPARK_STARTS_SECONDS = 10
_SPARK_SEGMENT_SECONDS = 0.004  # of a core, to hand each segment to a worker and its rows back


class KitOptions(NamedTuple):
    """How a kit is made; the options cross to the executors. ``out`` is a path."""

    out: str
    settings: FoldSettings
    has_digests: bool


def is_quicker_in_threads(read_bytes: int, segments: int, *, threads: int) -> bool:
    """Tell whether threads have read before Spark, with as many cores, has started and handed out.

    Of the bytes Spark's time is not counted: it may have more machines for them than this one.
    """
    in_threads = read_bytes / (threads * _BYTES_A_SECOND) + segments * _SEGMENT_SECONDS
    return in_threads <= _SPARK_STARTS_SECONDS + segments * _SPARK_SEGMENT_SECONDS / threads


def make_folders(work: KitWork, out: Path) -> None:
    """Make the folders of a kit.

    Raises:
        UsageError: the folder is not empty.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--out {out} is not empty: give a new folder for each kit")
    for number in range(len(work.log_dirs)):
        folder_of(out, number).mkdir(parents=True)
    for plan in work.plans:
        (folder_of(out, plan.number) / plan.log).mkdir()


def finish_kit(work: KitWork, options: KitOptions, *, made_ms: int) -> None:
    """Write what a kit says of the logs that are not read, and then its manifest."""
    out = Path(options.out)
    for number, log in work.unread:
        write_log(folder_of(out, number), log)
    manifest = KitManifest(
        log_dirs=work.log_dirs,
        logs=work.logs,
        made_ms=made_ms,
        has_digests=options.has_digests,
    )
    write_kit(out, manifest)


def scan_segment(scanner: KitScanner, plan: LogPlan, at: int, out: str) -> ScannedSegment | str:
    """Read a segment of a plan; return a text that says why if it cannot be read."""
    planned = plan.segments[at]
    into = folder_of(Path(out), plan.number) / plan.log
    is_recovered = planned.base_offset in plan.recovered
    scanned = scanner.scan(Path(plan.folder), planned.base_offset, into if is_recovered else None)
    if isinstance(scanned, str):
        return scanned
    if (scanned.seen.size_bytes, scanned.seen.mtime_ns) != planned[1:]:
        return f"segment {planned.base_offset} has changed since it was listed"
    return scanned


def fold_planned(
    plan: LogPlan, scanned: Iterable[ScannedSegment | str], options: KitOptions
) -> LogKit:
    """Fold a log of which all segments were read, and write what the kit says of it."""
    folder = folder_of(Path(options.out), plan.number)
    segments: list[ScannedSegment] = []
    unread = None
    for segment in scanned:
        if isinstance(segment, str):
            unread = unread or segment
        else:
            segments.append(segment)
    if unread is None:
        log = fold_log(plan, segments, folder / plan.log, options.settings)
    else:
        log = plan.kit(KitState.REFUSED, unread)
    write_log(folder, log)
    return log


def read_in_threads(threads: int, tell_read: Callable[[int], None] | None = None) -> "Reader":
    """Return a reader that reads and folds all logs in threads of this process.

    Segments are read side by side, also those of one log. ``tell_read`` is told how many bytes each
    segment that was read has.
    """

    def told(segment: KitSegment, scanned: ScannedSegment | str) -> ScannedSegment | str:
        if tell_read is not None:
            tell_read(segment.size_bytes)
        return scanned

    def read(work: KitWork, options: KitOptions) -> Iterator[LogKit]:
        own = local()

        def scan(task: tuple[LogPlan, int]) -> ScannedSegment | str:
            if not hasattr(own, "scanner"):
                own.scanner = new_scanner(options)
            return scan_segment(own.scanner, *task, options.out)

        with ThreadPoolExecutor(threads) as pool:
            tasks = ((plan, at) for plan in work.plans for at in range(len(plan.segments)))
            scanned = map_ahead(pool, scan, tasks, threads=threads)
            try:
                for plan in work.plans:
                    yield fold_planned(
                        plan, [told(each, next(scanned)) for each in plan.segments], options
                    )
            finally:
                pool.shutdown(wait=False, cancel_futures=True)  # Ctrl-C: no other one is begun

    return read


def new_scanner(options: KitOptions) -> KitScanner:
    """Return a scanner that reads segments as the options say."""
    return KitScanner(options.settings.recovery, has_digests=options.has_digests)


Reader = Callable[[KitWork, KitOptions], Iterator[LogKit]]
"""Reads and folds all logs of a kit: threads of this process, or Spark."""


def run_kit(options: KitOptions, *, work: KitWork, read: Reader, made_ms: int) -> Iterator[LogKit]:
    """Make a kit; yield what it says of each log.

    Args:
        options: where the kit goes, and how it is made.
        work: what ``plan_kit`` listed.
        read: reads and folds the logs.
        made_ms: the time that the kit names as its own, in ms since 1970.

    Raises:
        UsageError: the folder is not empty.
        OSError: a segment cannot be read, or the kit cannot be written. The kit has no manifest.
    """
    make_folders(work, Path(options.out))
    for _, log in work.unread:
        yield log
    yield from read(work, options)
    finish_kit(work, options, made_ms=made_ms)
