"""Topic ids, read from what kafka-topics prints."""

import pytest

from kafka_segments.errors import CorruptTextError
from kafka_segments.kafka.text.checkpoints import parse_partition_metadata
from kafka_segments.kafka.text.topic_ids import encode_partition_metadata, parse_topic_ids

DESCRIBED = (
    "Topic: a.b\tTopicId: 6ZvIBo7HSWiOS3Z1Zz8NMg\tPartitionCount: 1\tConfigs:\n"
    "\tTopic: a.b\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    "Topic: c\tTopicId: -AAAAAAAAAAAAAAAAAAAAw\tPartitionCount: 1\n"
)


def test_the_id_of_each_topic_is_read_and_comes_back_from_the_file() -> None:
    ids = parse_topic_ids("f", DESCRIBED)

    assert ids == {"a.b": "6ZvIBo7HSWiOS3Z1Zz8NMg", "c": "-AAAAAAAAAAAAAAAAAAAAw"}
    assert parse_partition_metadata(encode_partition_metadata(ids["c"]).decode()) == ids["c"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Topic: a TopicId: x", "f: x of topic a is no topic id"),
        (f"{DESCRIBED}Topic: c TopicId: {'B' * 22}", "topic c has ids -A+w and B+"),
        ("orders", "no topics: the output of kafka-topics --describe expected"),
    ],
)
def test_what_is_no_output_of_kafka_topics_is_refused(text: str, message: str) -> None:
    with pytest.raises(CorruptTextError, match=message):
        parse_topic_ids("f", text)
