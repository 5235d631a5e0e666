"""Take first looks at segments where they lie: ranges of the log and of its index files."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from threading import local
from typing import Any, NamedTuple

import numpy as np

from kafka_segments.errors import CorruptIndexError, FileChangedError
from kafka_segments.files.storage.files import OpenSegment, Place, open_segment, place
from kafka_segments.files.storage.ranged_files import CountedRanges
from kafka_segments.kafka.index.segment.first_look import MOST_WHOLE_BYTES, FirstLook, FirstLooker
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.tier.segment_manifest import RemoteSegment

LOOKS_AT_ONCE = 64
"""Of a task: each of them waits for the store nearly all of the time."""


class Looked(NamedTuple):
    """A first look that was taken, and what it took.

    ``found`` is None if the segment must be read as a whole: ``doubt`` says why, None that it is
    small. ``size_bytes`` is that of the log in an object of tiered storage; None: the file's size.
    """

    found: FirstLook | None
    doubt: str | None = None
    size_bytes: int | None = None
    bytes_read: int = 0


class FirstLooks:
    """Looks at one segment after another.

    Index files are those beside a segment, or in tiered storage the parts of its object of indexes.
    """

    def __init__(self, options: RecoveryOptions) -> None:
        self._looker = FirstLooker(options)
        self._ranges = CountedRanges()

    def take(self, source: str, log: Place, base_offset: int, *, is_active: bool) -> Looked:
        """Look at a segment; what contradicts its index files is a ``doubt``.

        Raises:
            FileChangedError: the log changed meanwhile.
            OSError: the log cannot be read.
        """
        with open_segment(log, reads_ahead=False) as segment:
            if segment.size_bytes <= MOST_WHOLE_BYTES:
                return Looked(None)
            before = self._ranges.bytes_read
            try:
                found = self._look(log, segment, source, base_offset, is_active=is_active)
            except CorruptIndexError as error:
                return Looked(None, str(error))
            segment.check_unchanged()
        is_tiered = segment.manifest is not None
        size_bytes = segment.size_bytes if is_tiered else None
        return Looked(found, None, size_bytes, self._ranges.bytes_read - before)

    def _look(
        self, log: Place, segment: OpenSegment, source: str, base_offset: int, *, is_active: bool
    ) -> FirstLook:
        with ExitStack() as files:
            found = self._looker.look(
                self._ranges.log(segment),
                self._ranges.index_files(log, segment, files, source=source),
                base_offset=base_offset,
                is_active=is_active,
            )
        remote = None if segment.manifest is None else segment.manifest.segment
        return found if remote is None else _as_announced(found, remote)


class LooksAtOnce:
    """Looks at many segments of a store in parallel: most of a look there is waiting.

    Segments on a local disk are left out, where nothing is waited for. Its threads, and the
    buffers of each, are kept until it is closed.
    """

    def __init__(self, options: RecoveryOptions) -> None:
        self._options = options
        self._of_thread = local()
        self._pool = ThreadPoolExecutor(LOOKS_AT_ONCE)

    def begin(self, rows: Sequence[dict[str, Any]]) -> Iterator[Looked | None]:
        """Begin looks; return what waits for each. None: not taken, or not come to an end.

        Needs: source, relative_path, name, base_offset, is_active of each row.
        """
        begun = [self._begin(row) for row in rows]
        return (None if one is None else one.result() for one in begun)

    def close(self) -> None:
        """Give up what was begun and has not come to its turn."""
        self._pool.shutdown(cancel_futures=True)

    def _begin(self, row: dict[str, Any]) -> Future[Looked | None] | None:
        if place(row["source"]).store.is_local:
            return None
        return self._pool.submit(self._take, row)

    def _take(self, row: dict[str, Any]) -> Looked | None:
        if not hasattr(self._of_thread, "looks"):
            self._of_thread.looks = FirstLooks(self._options)
        looks: FirstLooks = self._of_thread.looks
        log = place(row["source"]).child(row["relative_path"], row["name"])
        try:
            return looks.take(row["source"], log, row["base_offset"], is_active=row["is_active"])
        except (OSError, FileChangedError):  # whoever looks again gets it, and says so
            return None


def _as_announced(found: FirstLook, remote: RemoteSegment) -> FirstLook:
    """Check what was found by what a broker announced at the upload; add its leader epochs."""
    announced = (remote.end_offset, remote.max_timestamp_ms)
    here = (found.next_offset - 1, found.max_timestamp)
    if announced != here:
        raise CorruptIndexError(
            f"the manifest announces last offset {announced[0]} and timestamp {announced[1]}, the"
            f" log and its indexes have {here[0]} and {here[1]}"
        )
    epochs = remote.leader_epochs
    starts = [*(epoch.start_offset for epoch in epochs), found.next_offset]
    are_sound = all(start < after for start, after in pairwise(starts))
    is_seen = epochs and (epochs[0], epochs[-1].epoch) == (found.first_epoch, found.last_epoch)
    if not (is_seen and are_sound):
        return found
    return replace(found, leader_epochs=np.array(epochs, dtype=np.int64))
