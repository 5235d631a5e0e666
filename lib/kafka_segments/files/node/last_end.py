"""Read where a log ends, if that decides whether its start reads batches for the producers' state.

After a clean stop a snapshot lies at the log's end, and none are read. One behind the beginning of
the last segment can be older: then those of this segment behind it are.
"""

from collections.abc import Mapping

from kafka_segments.errors import FileChangedError, UnreadableObjectError
from kafka_segments.files.segments.segment_ends import read_segment_end
from kafka_segments.files.storage.files import Place
from kafka_segments.kafka.broker_rules.start.facts import SegmentEnd
from kafka_segments.kafka.broker_rules.start.replays import snapshots_of
from kafka_segments.kafka.text.names import SWAP_SUFFIX, parse_segment_name


def read_last_end(folder: Place, sizes: Mapping[str, int]) -> SegmentEnd | None:
    """Read where the last segment ends; None: no snapshot lies behind its beginning.

    What cannot be read is told where the ends of all segments are read.

    Args:
        folder: a partition's folder.
        sizes: bytes of its files; with ``.swap`` among them, the last segment may be another one.
    """
    bases = [base for name in sizes if (base := parse_segment_name(name)) is not None]
    last = max(bases, default=None)
    if last is None or any(name.endswith(SWAP_SUFFIX) for name in sizes):
        return None
    if max(snapshots_of(sizes), default=last) <= last:
        return None
    try:
        return read_segment_end(folder, last, sizes)
    except (OSError, FileChangedError, UnreadableObjectError):
        return None
