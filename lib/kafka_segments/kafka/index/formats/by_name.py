"""The index formats that a build can write, by name."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_segments.kafka.index.formats.every_n_index import EveryNFormat
from kafka_segments.kafka.index.formats.index_format import IndexFormat, SegmentToIndex
from kafka_segments.kafka.index.formats.kip33_index import Kip33Format
from kafka_segments.kafka.index.formats.minute_index import MinuteFormat
from kafka_segments.kafka.index.segment.time_index import encode_time_index
from kafka_segments.kafka.text.names import INDEX_SUFFIXES, TIME_INDEX_SUFFIX


@dataclass(frozen=True)
class KafkaFormat(IndexFormat):
    """``.index`` and ``.timeindex`` as recovery writes them; the only format that brokers read."""

    name = "kafka"
    suffix = TIME_INDEX_SUFFIX
    replaces = TIME_INDEX_SUFFIX

    def encode(self, segment: SegmentToIndex) -> bytes:
        """Return the bytes of Kafka's time index."""
        return encode_time_index(segment.time_entries, base_offset=segment.base_offset)


FORMATS: Mapping[str, type[IndexFormat]] = {
    made.name: made for made in (KafkaFormat, Kip33Format, MinuteFormat, EveryNFormat)
}
KAFKAS_OWN = KafkaFormat()
FOREIGN_SUFFIXES = {
    made.name: made.suffix for made in FORMATS.values() if made.suffix not in INDEX_SUFFIXES
}
"""Suffixes that Kafka does not have, by the name of their format."""
ALL_SUFFIXES = (*INDEX_SUFFIXES, *FOREIGN_SUFFIXES.values())
"""The suffixes of all index files that a build of any format can leave."""
