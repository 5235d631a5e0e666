"""Look at the producers' snapshots that a start loads.

One that cannot be read a broker deletes, and loads the one before it: from there on batches are
read. Only those are looked at that a start comes to, as a log has one for each of its segments.

Source: ProducerStateManager.loadFromSnapshot, readSnapshot (4.3.1).
"""

from kafka_segments.errors import CorruptIndexError
from kafka_segments.files.storage.files import Place, read_whole
from kafka_segments.kafka.broker_rules.start.log_start import LogStart
from kafka_segments.kafka.index.log.snapshots import decode_snapshot
from kafka_segments.kafka.text.names import SNAPSHOT_SUFFIX, file_name

_MOST_BYTES = 1024 * 1024 * 1024


def is_snapshot_sound(folder: Place, offset: int) -> bool:
    """Tell whether a broker loads a snapshot of a partition's folder; it deletes others.

    Raises:
        OSError: it cannot be read.
    """
    file = folder.child(file_name(offset, SNAPSHOT_SUFFIX))
    try:
        decode_snapshot(read_whole(file, most_bytes=_MOST_BYTES))
    except CorruptIndexError:
        return False
    return True


def by_sound_snapshots(folder: Place, start: LogStart) -> LogStart:
    """Return a log's start as it is with the snapshots that can be read.

    Raises:
        OSError: a file cannot be read.
    """
    sound: set[int] = set()
    while asked := start.loaded_snapshots - sound:
        sound |= {offset for offset in asked if is_snapshot_sound(folder, offset)}
        bad = asked - sound
        if not bad:
            break
        start = start.without_snapshots(bad)
    return start
