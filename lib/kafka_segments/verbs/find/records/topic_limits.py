"""The ``max.message.bytes`` of topics, from a metadata log among the segments that are read."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka_segments.errors import FileChangedError, SourceError, UnreadableObjectError
from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.node.metadata_log import read_metadata_log
from kafka_segments.files.storage.files import first_line, place
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.find.records.large_batches import MAX_MESSAGE_BYTES

_ERRORS = (OSError, SourceError, FileChangedError, UnreadableObjectError)


class TopicLimits(NamedTuple):
    """``max.message.bytes`` by topic, of all others ``default``.

    ``known_by``: from where. ``problem``: why a metadata log that is there does not tell; None: it
    does, or there is none.
    """

    of_topic: Mapping[str, int]
    default: int
    known_by: str
    problem: str | None = None


_DEFAULT = f"Kafka's default, {MAX_MESSAGE_BYTES}"
DEFAULTS = TopicLimits({}, MAX_MESSAGE_BYTES, f"{_DEFAULT}: no metadata log is at hand")


def read_limits(segments: Iterable[ListedSegment]) -> TopicLimits:
    """Read the limits; where no metadata log is among the segments, Kafka's default counts."""
    here = next((one for one in segments if one.topic == METADATA_TOPIC), None)
    if here is None:
        return DEFAULTS
    folder = join_uri(here.source, here.relative_path)
    try:
        entries = entries_of(here.source, here.relative_path)
        found = read_metadata_log(place(folder), entries)
    except _ERRORS as error:
        return _not_told(folder, first_line(error))
    if found.state is None:
        return _not_told(folder, found.why_no_state or "it cannot be understood")
    of_all = found.state.broker_configs.get("", {}).get("message.max.bytes", "")
    of_topic = {
        topic: int(configs["max.message.bytes"])
        for topic, configs in found.state.configs.items()
        if configs.get("max.message.bytes", "").isdecimal()
    }
    own = int(of_all) if of_all.isdecimal() else MAX_MESSAGE_BYTES
    return TopicLimits(of_topic, own, f"{folder}, else {own}")


def _not_told(folder: str, why: str) -> TopicLimits:
    problem = f"{folder}: max.message.bytes of topics is not known: {why}"
    return TopicLimits({}, MAX_MESSAGE_BYTES, f"{_DEFAULT}: {why}", problem)
