"""Make records of ``__remote_log_metadata`` from what the objects of a tier say of themselves."""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kafka_segments.kafka.messages.messages import LAYOUTS
from kafka_segments.kafka.messages.records import REMOTE_LOG_TOPIC
from kafka_segments.kafka.messages.remote_log_topic import encode_record, metadata_partition
from kafka_segments.verbs.find.internals.tier.decide.tier import COPIED, COPYING, STATES

_NO_BROKER = -1


def rebuilt_lines(segments: Iterable[Mapping[str, Any]], *, partitions: int) -> Iterator[str]:
    """Yield two lines of JSON for each segment: records that its copy began and that it ended.

    Args:
        segments: topic, topic_id, partition, segment_id, last_modified_ms, and found, as
            ``list_objects`` gives them; with topic id, end offset and leader epochs, in the order
            in which they are announced.
        partitions: of ``__remote_log_metadata``.
    """
    for segment in segments:
        number = metadata_partition(segment["topic_id"], segment["partition"], partitions)
        for state, value in zip((COPYING, COPIED), _values(segment), strict=True):
            yield json.dumps(
                {
                    "topic": REMOTE_LOG_TOPIC,
                    "partition": number,
                    "key": None,
                    "value": base64.b64encode(value).decode("ascii"),
                    "of": f"{segment['topic']}-{segment['partition']}",
                    "segment_id": segment["segment_id"],
                    "start_offset": segment["found"]["start_offset"],
                    "end_offset": segment["found"]["end_offset"],
                    "state": STATES[state],
                }
            )


def _values(segment: Mapping[str, Any]) -> tuple[bytes, bytes]:
    found = segment["found"]
    event_ms = found["event_ms"]
    common = {
        "remoteLogSegmentId": {
            "topicIdPartition": {
                "name": segment["topic"],
                "id": segment["topic_id"],
                "partition": segment["partition"],
            },
            "id": segment["segment_id"],
        },
        "brokerId": _NO_BROKER if found["broker_id"] is None else found["broker_id"],
        "eventTimestampMs": segment["last_modified_ms"] if event_ms is None else event_ms,
    }
    added = common | {
        "startOffset": found["start_offset"],
        "endOffset": found["end_offset"],
        "maxTimestampMs": found["max_timestamp_ms"],
        "segmentLeaderEpochs": [
            {"leaderEpoch": entry["epoch"], "offset": entry["start_offset"]}
            for entry in found["leader_epochs"]
        ],
        "segmentSizeInBytes": found["size_bytes"],
        "remoteLogSegmentState": COPYING,
        "txnIndexEmpty": bool(found["is_txn_index_empty"]),
    }
    updated = common | {"remoteLogSegmentState": COPIED}
    return (
        encode_record(LAYOUTS["RemoteLogSegmentMetadataRecord"], added),
        encode_record(LAYOUTS["RemoteLogSegmentMetadataUpdateRecord"], updated),
    )
