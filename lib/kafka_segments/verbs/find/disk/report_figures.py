"""What ``disk`` gives Prometheus: figures of each log directory."""

import math
from collections.abc import Iterator

from kafka_segments.console.prometheus import Figure, Metric, counted_as_whole
from kafka_segments.files.storage.local_folder import as_text
from kafka_segments.verbs.find.disk.decide.growth import SPANS_MS, full_in_ms
from kafka_segments.verbs.find.disk.decide.kinds import What
from kafka_segments.verbs.find.disk.decide.verdicts import MayGo
from kafka_segments.verbs.find.disk.run import DirUse, DiskUse

_DIR = ("log_dir",)
_USED = Metric("disk_used_bytes", "Bytes on the disk, as du counts them.", (*_DIR, "what"))
_OF_TOPIC = Metric("disk_topic_used_bytes", "Bytes on the disk of a topic.", (*_DIR, "topic"))
_SIZE = Metric("disk_filesystem_bytes", "Size of the disk of a directory.", _DIR)
_FREE = Metric("disk_filesystem_free_bytes", "Bytes of the disk that are free.", _DIR)
_WRITTEN = Metric(
    "disk_written_bytes",
    "Bytes that the directories of its disk got in the last hour or day and that are still there,"
    " at least and at most, by the times of files.",
    (*_DIR, "span", "bound"),
)
_FULL = Metric(
    "disk_full_seconds",
    "After how long the disk is full at the soonest, at the pace of the span, with nothing deleted;"
    " +Inf: never.",
    (*_DIR, "span"),
)
_FOLDERS = Metric(
    "disk_folders", "Folders that somebody may want to remove, by what is known.", (*_DIR, "may_go")
)
_RUNNING = Metric("disk_broker_running", "Whether a broker runs on the directory.", _DIR)
_BLOCKED = Metric(
    "disk_blocked_bytes",
    "Bytes that have expired and that an older segment keeps, as retention decided.",
    _DIR,
)
_SPANS = ("hour", "day")


def figures_of(use: DiskUse) -> Iterator[Figure]:
    """Yield the figures of an account; where not all was looked at, its sums are not known."""
    for one in use.dirs:
        yield from _of_dir(use, one)


def _of_dir(use: DiskUse, one: DirUse) -> Iterator[Figure]:
    log_dir = as_text(one.log_dir)
    is_whole = not any(_lies_in(problem, log_dir) for problem in use.problems)
    used = {each.what: each.used_bytes for each in use.accounts if each.log_dir == log_dir}
    for what in What:
        size = used.get(what, 0)
        yield Figure(_USED, (log_dir, what.value), size if is_whole else None)
    for topic in use.topics:
        if topic.log_dir == log_dir:
            size = topic.used_bytes
            yield Figure(_OF_TOPIC, (log_dir, topic.topic), size if is_whole else None)
    space = one.space
    yield Figure(_SIZE, (log_dir,), None if space is None else space.total_bytes)
    yield Figure(_FREE, (log_dir,), None if space is None else space.free_bytes)
    grows = not use.problems  # what lies on the same disk counts, too
    for name, span, growth in zip(_SPANS, SPANS_MS, use.growth_of(one), strict=True):
        for bound, size in zip(("least", "most"), growth, strict=True):
            yield Figure(_WRITTEN, (log_dir, name, bound), size if grows else None)
        soonest = None
        if space is not None and grows:
            soonest_ms, _ = full_in_ms(space.free_bytes, growth, span_ms=span)
            soonest = math.inf if soonest_ms is None else soonest_ms / 1000
        yield Figure(_FULL, (log_dir, name), soonest)
    for may_go in MayGo:
        found = sum(
            each.folder.log_dir == one.log_dir and each.verdict.may_go == may_go
            for each in use.folders
        )
        # What cannot be judged, as without the metadata log, may be of any of the others.
        is_judged = is_whole and not use.unknown
        yield Figure(_FOLDERS, (log_dir, may_go.value), counted_as_whole(found, is_whole=is_judged))
    yield Figure(_RUNNING, (log_dir,), one.lock.is_held)
    grown = use.of_tables
    if grown is not None:
        blocked = sum(each.size_bytes for each in grown.blocked if each.log_dir == log_dir)
        is_known = grown.decided_ms is not None and log_dir not in grown.unknown
        yield Figure(_BLOCKED, (log_dir,), blocked if is_known else None)


def _lies_in(problem: str, log_dir: str) -> bool:
    return problem.startswith((f"{log_dir}:", f"{log_dir}/"))
