"""How much of a batch brokers read where they look a time up in it, release by release.

Source: FileRecords.searchForTimestamp of 3.9.2, 4.1.2, 4.2.2, 4.3.1 and 4.4.0; the documentation of
max.decompressed.message.bytes.
"""

from typing import NamedTuple

from kafka_segments.broker_rules.versions import Version
from kafka_segments.wire.record_stream import Limit

_MOST_BYTES = 256 * 1024 * 1024
_STREAMS_SINCE = (4, 4)
_STREAMS_TOO = ((4, 2, 2), (4, 3))  # from the first on, up to the second


class RecordLookup(NamedTuple):
    """How a compressed batch is read.

    ``streams``: up to the record that is looked for; else as a whole, so that damage behind the
    record ends the lookup. ``most_record_bytes``: a larger record ends it too; None: no limit.
    A batch that is not compressed is read up to the record in every release.
    """

    streams: bool = False
    most_record_bytes: int | None = None

    def limit(self, *, is_compressed: bool) -> Limit:
        """Return how large a record of a batch may be."""
        if not is_compressed or self.most_record_bytes is None:
            return Limit(_MOST_BYTES, "the most that is read here")
        return Limit(self.most_record_bytes, "max.decompressed.message.bytes", is_set=True)


def record_lookup(version: Version, *, most_record_bytes: int | None = None) -> RecordLookup:
    """Return how brokers of a release read; ``most_record_bytes``: the topic's setting."""
    first, last = _STREAMS_TOO
    if version >= _STREAMS_SINCE or first <= version < last:
        return RecordLookup(True, most_record_bytes)
    return RecordLookup()
