"""Records of ``__remote_log_metadata`` written by hand."""

from collections.abc import Sequence
from typing import Any

from kafka_segments.kafka.messages.messages import LAYOUTS
from kafka_segments.kafka.messages.remote_log_topic import encode_record
from support.stores.tiered_objects import TOPIC_ID

COPYING, COPIED, DELETING, DELETED = range(4)


def segment_id(number: int) -> str:
    """Make an id of a number below 10."""
    return "A" * 20 + f"{number}A"


def _of_log(topic: str, partition: int) -> dict[str, Any]:
    return {"name": topic, "id": TOPIC_ID, "partition": partition}


def added(
    number: int | str,
    start: int,
    end: int,
    *,
    state: int = COPYING,
    ms: int = 0,
    size: int = 100,
    max_ms: int = 1,
    epochs: Sequence[tuple[int, int]] | None = None,
    topic: str = "orders",
    partition: int = 0,
    broker: int = 1,
) -> bytes:
    """Write what announces a segment."""
    name = number if isinstance(number, str) else segment_id(number)
    found = [(0, start)] if epochs is None else epochs
    return encode_record(
        LAYOUTS["RemoteLogSegmentMetadataRecord"],
        {
            "remoteLogSegmentId": {"topicIdPartition": _of_log(topic, partition), "id": name},
            "startOffset": start,
            "endOffset": end,
            "brokerId": broker,
            "maxTimestampMs": max_ms,
            "eventTimestampMs": ms,
            "segmentLeaderEpochs": [{"leaderEpoch": e, "offset": at} for e, at in found],
            "segmentSizeInBytes": size,
            "remoteLogSegmentState": state,
        },
    )


def updated(
    number: int | str,
    state: int,
    *,
    ms: int = 0,
    topic: str = "orders",
    partition: int = 0,
    broker: int = 1,
) -> bytes:
    """Write what changes a segment's state."""
    name = number if isinstance(number, str) else segment_id(number)
    return encode_record(
        LAYOUTS["RemoteLogSegmentMetadataUpdateRecord"],
        {
            "remoteLogSegmentId": {"topicIdPartition": _of_log(topic, partition), "id": name},
            "brokerId": broker,
            "eventTimestampMs": ms,
            "remoteLogSegmentState": state,
        },
    )


def partition_deleted(state: int, *, topic: str = "orders", partition: int = 0) -> bytes:
    """Write how far the deletion of a partition is: 0 marked, 1 started, 2 finished."""
    return encode_record(
        LAYOUTS["RemotePartitionDeleteMetadataRecord"],
        {
            "topicIdPartition": _of_log(topic, partition),
            "brokerId": 1,
            "eventTimestampMs": 0,
            "remotePartitionDeleteState": state,
        },
    )
