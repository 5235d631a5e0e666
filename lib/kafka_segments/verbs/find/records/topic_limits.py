"""The ``max.message.bytes`` of topics, from a metadata log among the segments that are read."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka_segments.errors import FileChangedError, SourceError, UnreadableObjectError
from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.storage.files import first_line, place
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.wire.names import METADATA_TOPIC
from kafka_segments.verbs.change.recovery.forecast.metadata_log import read_metadata_log
from kafka_segments.verbs.find.records.large_batches import MAX_MESSAGE_BYTES

_ERRORS = (OSError, SourceError, FileChangedError, UnreadableObjectError)


class TopicLimits(NamedTuple):
    """``max.message.bytes`` by topic, of all others ``default``; ``known_by``: from where."""

    of_topic: Mapping[str, int]
    default: int
    known_by: str


def read_limits(segments: Iterable[ListedSegment]) -> TopicLimits:
    """Read the limits; where no metadata log is among the segments, Kafka's default counts."""
    default = f"Kafka's default, {MAX_MESSAGE_BYTES}"
    here = next((one for one in segments if one.topic == METADATA_TOPIC), None)
    if here is None:
        return TopicLimits({}, MAX_MESSAGE_BYTES, f"{default}: no metadata log is at hand")
    folder = join_uri(here.source, here.relative_path)
    try:
        entries = entries_of(here.source, here.relative_path)
        sizes = {entry.name: entry.size_bytes for entry in entries if not entry.is_folder}
        found = read_metadata_log(place(folder), sizes)
    except _ERRORS as error:
        return TopicLimits({}, MAX_MESSAGE_BYTES, f"{default}: {first_line(error)}")
    if found.facts is None:
        return TopicLimits({}, MAX_MESSAGE_BYTES, f"{default}: {found.unknown}")
    of_all = found.facts.broker_configs.get("", {}).get("message.max.bytes", "")
    of_topic = {
        topic: int(configs["max.message.bytes"])
        for topic, configs in found.facts.configs.items()
        if configs.get("max.message.bytes", "").isdecimal()
    }
    own = int(of_all) if of_all.isdecimal() else MAX_MESSAGE_BYTES
    return TopicLimits(of_topic, own, f"{folder}, else {own}")
