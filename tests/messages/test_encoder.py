"""What the encoder writes is what Kafka's classes write."""

import random

import pytest

from kafka_segments.errors import CorruptMessageError
from kafka_segments.kafka.messages.encoder import encode, write_unsigned_varint
from kafka_segments.kafka.messages.messages import LAYOUTS
from kafka_segments.kafka.messages.remote_log_topic import metadata_partition
from kafka_segments.kafka.messages.values import read_unsigned_varint
from support.kafka.kafka_referee import Referee
from support.logs.remote_records import added, updated
from support.stores.tiered_objects import TOPIC_ID


def test_a_value_that_its_field_cannot_hold_is_refused() -> None:
    layout = LAYOUTS["RemotePartitionDeleteMetadataRecord"]

    with pytest.raises(CorruptMessageError, match="cannot be written: byte format requires"):
        encode(layout, 0, {"remotePartitionDeleteState": 128})
    with pytest.raises(CorruptMessageError, match="null, which a field cannot be"):
        encode(layout, 0, {"topicIdPartition": {"name": None}})
    with pytest.raises(CorruptMessageError, match="has version 1, 0 is known"):
        encode(layout, 1, {})
    with pytest.raises(CorruptMessageError, match="has version 99"):
        encode(LAYOUTS["LegacyOffsetCommitValue"], 99, {})


def test_varints_read_as_they_were_written() -> None:
    for value in (0, 1, 127, 128, 300, 2**21 - 1, 2**21, 2**31 - 1):
        data = write_unsigned_varint(value)

        assert read_unsigned_varint(data, 0) == (value, len(data))


@pytest.mark.referee
def test_a_partition_of_the_topic_is_the_one_in_which_brokers_look(
    referee: Referee, seed: int
) -> None:
    choice = random.Random(f"{seed} partitions")
    for partitions in (1, 2, 50):
        logs = [choice.randrange(2**31) for _ in range(50)]
        values = [added(1, 0, 9, partition=log) for log in logs]

        records = referee.read_remote(values, partitions=partitions)

        assert [record["metadata_partition"] for record in records] == [
            metadata_partition(TOPIC_ID, log, partitions) for log in logs
        ]


@pytest.mark.referee
def test_kafka_reads_what_was_written(referee: Referee) -> None:
    values = [
        added(1, 10, 19, ms=5, size=77, max_ms=9, epochs=[(2, 10), (4, 15)], broker=3),
        updated(1, 1, ms=6, broker=4),
    ]

    records = referee.read_remote(values, partitions=1)

    of_log = {"topic": "orders", "topic_id": TOPIC_ID, "partition": 0, "metadata_partition": 0}
    of_segment = {"segment_id": "A" * 20 + "1A", **of_log}
    assert records == [
        {
            **{"state": "COPY_SEGMENT_STARTED", "state_ms": 5, "broker_id": 3, "size_bytes": 77},
            **{"start_offset": 10, "end_offset": 19, "max_timestamp_ms": 9, **of_segment},
            "is_txn_index_empty": False,
            "leader_epochs": [[2, 10], [4, 15]],
        },
        {"state": "COPY_SEGMENT_FINISHED", "state_ms": 6, "broker_id": 4, **of_segment},
    ]
