"""How much of a batch brokers read where they look a time up in it, release by release.

Source: FileRecords.searchForTimestamp of 3.9.2, 4.1.2, 4.2.2, 4.3.1 and 4.4.0; the documentation of
max.decompressed.message.bytes.
"""

from collections.abc import Mapping
from typing import NamedTuple, Self

from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.kafka.wire.record_stream import Limit

MOST_RECORD_BYTES = "max.decompressed.message.bytes"
RecordLimits = Mapping[tuple[str, str, str], int]
"""That setting by cluster, kind (topic, broker) and name (of a broker: its id, or none)."""
_MOST_BYTES = 256 * 1024 * 1024
_STREAMS_SINCE = (4, 4)
_STREAMS_TOO = ((4, 2, 2), (4, 3))  # from the first on, up to the second


class RecordLookup(NamedTuple):
    """How a compressed batch is read.

    ``streams``: up to the record that is looked for; else as a whole, so that damage behind the
    record ends the lookup. ``most_record_bytes``: a larger record ends it too; None: no limit.
    ``limits``: what topics and brokers have of their own. A batch that is not compressed is read up
    to the record in every release.
    """

    streams: bool = False
    most_record_bytes: int | None = None
    limits: RecordLimits | None = None

    def of_log(self, cluster: str, broker_id: int, topic: str) -> Self:
        """Return how a batch of a log is read: the topic's limit counts, else its broker's."""
        own = ("topic", topic), ("broker", str(broker_id)), ("broker", "")
        limits = self.limits or {}
        places = ((cluster, *place) for place in own)
        found = next((limits[place] for place in places if place in limits), None)
        return self if found is None else self._replace(most_record_bytes=found)

    def limit(self, *, is_compressed: bool) -> Limit:
        """Return how large a record of a batch may be."""
        if not is_compressed or self.most_record_bytes is None:
            return Limit(_MOST_BYTES, "the most that is read here")
        return Limit(self.most_record_bytes, MOST_RECORD_BYTES, is_set=True)


def record_lookup(version: Version, *, most_record_bytes: int | None = None) -> RecordLookup:
    """Return how brokers of a release read; ``most_record_bytes``: the topic's setting."""
    first, last = _STREAMS_TOO
    if version >= _STREAMS_SINCE or first <= version < last:
        return RecordLookup(True, most_record_bytes)
    return RecordLookup()
