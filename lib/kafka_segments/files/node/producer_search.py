"""Look for producers in a log whose start forgets them, as no snapshot is left that tells of them.

A log without producer ids, as most of ``__consumer_offsets`` is, has no state to forget.
"""

from collections.abc import Mapping

from kafka_segments.errors import UnreadableBatchError
from kafka_segments.files.storage.files import Place, open_segment
from kafka_segments.kafka.broker_rules.start.replays import kept_snapshots, snapshots_of
from kafka_segments.kafka.index.segment.batch_reading import headers
from kafka_segments.kafka.text.names import LOG_SUFFIX, file_name
from kafka_segments.kafka.wire import batches as wire

_MOST_WALKED = 64 * 1024 * 1024


def has_producers(folder: Place, bases: tuple[int, ...], files: Mapping[str, int]) -> bool | None:
    """Tell whether a log without a snapshot has producers, by its last batches' headers.

    None: a snapshot tells of them, or those read have none, and not all were read.

    Raises:
        OSError: a file cannot be read.
        FileChangedError: a file became shorter.
    """
    if kept_snapshots(snapshots_of(files), bases):
        return None
    left = _MOST_WALKED
    for base in reversed(bases):
        name = file_name(base, LOG_SUFFIX)
        left -= files.get(name, 0)
        if name not in files or left < 0:
            return None
        with open_segment(folder.child(name)) as opened:
            try:
                for batches in headers(opened.read_into, 0, opened.size_bytes):
                    if (batches[wire.BATCH_PRODUCER_ID] >= 0).any():
                        return True
            except UnreadableBatchError:
                return None
    return False
