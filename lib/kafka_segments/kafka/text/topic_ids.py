"""Topic ids, as ``kafka-topics --describe`` prints them and ``partition.metadata`` keeps them."""

import re

from kafka_segments.errors import CorruptTextError

_TOPIC = re.compile(r"\bTopic:\s*(\S+)\s+TopicId:\s*(\S+)")
_ID = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)


def parse_topic_ids(name: str, text: str) -> dict[str, str]:
    """Read the id of each topic in the output of ``kafka-topics --describe``, a file ``name``.

    Raises:
        CorruptTextError: an id that is none, two ids of a topic, or no topic at all.
    """
    ids: dict[str, str] = {}
    for topic, topic_id in _TOPIC.findall(text):
        if _ID.fullmatch(topic_id) is None:
            raise CorruptTextError(name, f"{topic_id} of topic {topic} is no topic id")
        if ids.setdefault(topic, topic_id) != topic_id:
            raise CorruptTextError(name, f"topic {topic} has ids {ids[topic]} and {topic_id}")
    if not ids:
        raise CorruptTextError(name, "no topics: the output of kafka-topics --describe expected")
    return ids


def encode_partition_metadata(topic_id: str) -> bytes:
    """Write the bytes of ``partition.metadata``. Source: PartitionMetadata.encode."""
    return f"version: 0\ntopic_id: {topic_id}".encode()
