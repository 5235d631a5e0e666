"""Ways to spoil the files of a log as a broker left them, one for each verdict of an audit.

``KINDS`` names what is done to a log of three segments, and what is to be said of the file.
"""

from __future__ import annotations

import os
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

DAY_MS = 86_400_000
INDEX, TIME_INDEX, TXN_INDEX = ".index", ".timeindex", ".txnindex"
EPOCHS = "leader-epoch-checkpoint"
_OFFSET_ENTRY, _TIME_ENTRY = struct.Struct(">ii"), struct.Struct(">qi")


class Log:
    """A partition's folder with the paths of its segments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.first, self.middle, self.active = sorted(folder.glob("*.log"))

    def file(self, offset: int, suffix: str) -> Path:
        return self.folder / f"{offset:020d}{suffix}"

    def snapshots(self) -> list[Path]:
        return sorted(self.folder.glob("*.snapshot"))


Spoil = Callable[[Log], Path]


class Spoilt(NamedTuple):
    """What is done (it gives the file that the verdict is about), and what is said of it."""

    spoil: Spoil
    verdict: str
    kind: str | None
    effect: str


KINDS: dict[str, Spoilt] = {}


def _kind(verdict: str, kind: str | None, effect: str) -> Callable[[Spoil], Spoil]:
    def register(spoil: Spoil) -> Spoil:
        KINDS[spoil.__name__.strip("_").replace("_", "-")] = Spoilt(spoil, verdict, kind, effect)
        return spoil

    return register


def _changed(path: Path, change: Callable[[bytes], bytes]) -> Path:
    path.write_bytes(change(path.read_bytes()))
    return path


def _first(log: Log, suffix: str, change: Callable[[bytes], bytes]) -> Path:
    return _changed(log.first.with_suffix(suffix), change)


def _entries(form: struct.Struct, data: bytes) -> list[tuple[int, int]]:
    return [form.unpack_from(data, at) for at in range(0, len(data), form.size)]


def _with_entry(data: bytes, form: struct.Struct, at: int, by: tuple[int, int]) -> bytes:
    """Add to both numbers of an entry."""
    entries = _entries(form, data)
    entries[at] = (entries[at][0] + by[0], entries[at][1] + by[1])
    return b"".join(form.pack(*entry) for entry in entries)


@_kind("identical", None, "trusted")
def sound(log: Log) -> Path:
    return log.first.with_suffix(INDEX)


@_kind("missing", None, "rebuilt_at_start")
def index_missing(log: Log) -> Path:
    log.first.with_suffix(INDEX).unlink()
    return log.first.with_suffix(INDEX)


@_kind("stale", "log_grew", "slow_lookups")
def index_log_grew(log: Log) -> Path:
    return _first(log, INDEX, lambda data: data[: len(data) // 16 * 8])


@_kind("corrupt", "length", "slow_lookups")
def index_cut(log: Log) -> Path:
    return _first(log, INDEX, lambda data: data[:-3])


@_kind("never_written", "all_zero", "slow_lookups")
def index_zeros(log: Log) -> Path:
    return _first(log, INDEX, lambda data: bytes(len(data)))


@_kind("padded", "trailing_zeros", "slow_lookups")
def index_padded(log: Log) -> Path:
    return _first(log, INDEX, lambda data: data + bytes(800))


@_kind("never_written", "empty", "trusted")
def index_empty(log: Log) -> Path:
    return _first(log, INDEX, lambda data: b"")


@_kind("corrupt", "no_batch", "wrong_lookups")
def index_no_batch(log: Log) -> Path:
    return _first(log, INDEX, lambda data: _with_entry(data, _OFFSET_ENTRY, 5, (0, 100)))


@_kind("corrupt", "wrong_offset", "wrong_lookups")
def index_wrong_offset(log: Log) -> Path:
    return _first(log, INDEX, lambda data: _with_entry(data, _OFFSET_ENTRY, 5, (-1, 0)))


@_kind("stale", "beyond_log", "wrong_lookups")
def index_beyond_log(log: Log) -> Path:
    return _first(log, INDEX, lambda data: _with_entry(data, _OFFSET_ENTRY, -1, (0, 2_000_000)))


@_kind("corrupt", "no_batch", "log_end_moves_back")
def active_index_no_batch(log: Log) -> Path:
    path = log.active.with_suffix(INDEX)
    return _changed(path, lambda data: _with_entry(data, _OFFSET_ENTRY, -1, (0, 100)))


@_kind("stale", "beyond_log", "log_end_moves_back")
def active_index_beyond_log(log: Log) -> Path:
    path = log.active.with_suffix(INDEX)
    return _changed(path, lambda data: _with_entry(data, _OFFSET_ENTRY, -1, (0, 2_000_000)))


@_kind("padded", "trailing_zeros", "slow_lookups")
def active_index_padded(log: Log) -> Path:
    return _changed(log.active.with_suffix(INDEX), lambda data: data + bytes(800))


def _old_file(log: Log) -> None:
    """Date the first segment's file two days back."""
    then = time.time() - 2 * DAY_MS / 1000
    os.utime(log.first, (then, then))


@_kind("missing", None, "falls_back_to_mtime")
def time_missing(log: Log) -> Path:
    log.first.with_suffix(TIME_INDEX).unlink()
    _old_file(log)
    return log.first.with_suffix(TIME_INDEX)


@_kind("never_written", "empty", "falls_back_to_mtime")
def time_empty(log: Log) -> Path:
    _old_file(log)
    return _first(log, TIME_INDEX, lambda data: b"")


@_kind("never_written", "all_zero", "deletes_data")
def time_zeros(log: Log) -> Path:
    return _first(log, TIME_INDEX, lambda data: bytes(len(data)))


@_kind("padded", "trailing_zeros", "deletes_data")
def time_padded(log: Log) -> Path:
    return _first(log, TIME_INDEX, lambda data: data + bytes(1200))


@_kind("never_written", "all_zero", "deletes_data")
def time_zeros_behind_older(log: Log) -> Path:
    return _changed(log.middle.with_suffix(TIME_INDEX), lambda data: bytes(len(data)))


@_kind("padded", "trailing_zeros", "deletes_data")
def active_time_padded(log: Log) -> Path:
    return _changed(log.active.with_suffix(TIME_INDEX), lambda data: data + bytes(1200))


@_kind("stale", "not_closed", "expires_early")
def time_not_closed(log: Log) -> Path:
    """The first segment's first records are two days old, its last ones young."""
    return _first(log, TIME_INDEX, lambda data: data[:36])


@_kind("corrupt", "length", "wrong_times")
def time_cut(log: Log) -> Path:
    return _first(log, TIME_INDEX, lambda data: data[:-5])


@_kind("corrupt", "untrue", "wrong_times")
def time_untrue(log: Log) -> Path:
    return _first(log, TIME_INDEX, lambda data: _with_entry(data, _TIME_ENTRY, 5, (-2000, 0)))


@_kind("corrupt", "out_of_order", "wrong_times")
def time_out_of_order(log: Log) -> Path:
    return _first(log, TIME_INDEX, lambda data: _with_entry(data, _TIME_ENTRY, 5, (0, 7)))


@_kind("stale", "beyond_log", "wrong_times")
def time_beyond_log(log: Log) -> Path:
    entry = (3_600_000, 5000)
    return _first(log, TIME_INDEX, lambda data: _with_entry(data, _TIME_ENTRY, -1, entry))


# The files of the whole log.


@_kind("corrupt", "out_of_order", "loses_epochs")
def epochs_back(log: Log) -> Path:
    return _changed(log.folder / EPOCHS, lambda _: b"0\n2\n5 0\n3 10\n")


@_kind("stale", "beyond_log", "loses_epochs")
def epochs_beyond_log(log: Log) -> Path:
    return _changed(log.folder / EPOCHS, lambda _: b"0\n2\n0 0\n7 50000\n")


@_kind("never_written", "empty", "loses_epochs")
def epochs_empty(log: Log) -> Path:
    return _changed(log.folder / EPOCHS, lambda _: b"")


@_kind("missing", None, "loses_epochs")
def epochs_missing(log: Log) -> Path:
    (log.folder / EPOCHS).unlink()
    return log.folder / EPOCHS


@_kind("valid", "no_segment", "deleted_at_start")
def snapshot_stray(log: Log) -> Path:
    stray = log.file(int(log.middle.stem) + 3, ".snapshot")
    shutil.copy(log.snapshots()[-1], stray)
    return stray


@_kind("stale", "beyond_log", "deleted_at_start")
def snapshot_beyond_log(log: Log) -> Path:
    stray = log.file(50_000, ".snapshot")
    shutil.copy(log.snapshots()[-1], stray)
    return stray


@_kind("corrupt", "bad_content", "never_read")
def snapshot_spoilt_older(log: Log) -> Path:
    return _changed(log.snapshots()[0], lambda data: data[:-1] + b"\x55")


@_kind("corrupt", "bad_content", "deleted_at_start")
def snapshot_spoilt_newest(log: Log) -> Path:
    return _changed(log.snapshots()[-1], lambda data: data[:-1] + b"\x55")


@_kind("orphan", "no_segment", "deleted_at_start")
def index_orphan(log: Log) -> Path:
    path = log.file(int(log.middle.stem) + 3, INDEX)
    shutil.copy(log.first.with_suffix(INDEX), path)
    return path


@_kind("missing", "gap", "not_served")
def segment_missing(log: Log) -> Path:
    for suffix in (".log", INDEX, TIME_INDEX):
        log.middle.with_suffix(suffix).unlink()
    return log.middle


@_kind("corrupt", "folder", "not_loaded")
def segment_folder(log: Log) -> Path:
    segment_missing(log)
    log.middle.mkdir()
    return log.middle


@_kind("corrupt", "dangling_link", "writes_elsewhere")
def time_dangling_link(log: Log) -> Path:
    path = log.first.with_suffix(TIME_INDEX)
    path.unlink()
    path.symlink_to(elsewhere(log.folder))
    return path


def elsewhere(folder: Path) -> Path:
    """Where the dangling link leads."""
    return folder.parents[1] / "elsewhere.timeindex"


@_kind("missing", None, "wrong_lookups")
def txn_missing(log: Log) -> Path:
    """Its first segment has an aborted transaction."""
    log.first.with_suffix(TXN_INDEX).unlink()
    return log.first.with_suffix(TXN_INDEX)
