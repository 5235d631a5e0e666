"""The records of ``__remote_log_metadata``, by their type numbers.

Source: the messages of org.apache.kafka.server.log.remote.metadata.storage.generated,
Kafka 4.3.1.
"""

from kafka_segments.generated.layout import (
    BOOL,
    BYTES,
    INT8,
    INT32,
    INT64,
    STRING,
    UUID,
    Array,
    Field,
    Layout,
    Struct,
)

_TOPIC_ID_PARTITION_ENTRY = Struct("TopicIdPartitionEntry").of(
    Field("name", STRING),
    Field("id", UUID),
    Field("partition", INT32),
)

_REMOTE_LOG_SEGMENT_ID_ENTRY = Struct("RemoteLogSegmentIdEntry").of(
    Field("topicIdPartition", _TOPIC_ID_PARTITION_ENTRY),
    Field("id", UUID),
)

_SEGMENT_LEADER_EPOCH_ENTRY = Struct("SegmentLeaderEpochEntry").of(
    Field("leaderEpoch", INT32),
    Field("offset", INT64),
)

REMOTE_LOG_SEGMENT_METADATA_RECORD = Layout("RemoteLogSegmentMetadataRecord", type_id=0).of(
    Field("remoteLogSegmentId", _REMOTE_LOG_SEGMENT_ID_ENTRY),
    Field("startOffset", INT64),
    Field("endOffset", INT64),
    Field("brokerId", INT32),
    Field("maxTimestampMs", INT64),
    Field("eventTimestampMs", INT64),
    Field("segmentLeaderEpochs", Array(_SEGMENT_LEADER_EPOCH_ENTRY)),
    Field("segmentSizeInBytes", INT32),
    Field("customMetadata", BYTES, nullable="0+", default=None),
    Field("remoteLogSegmentState", INT8),
    Field("txnIndexEmpty", BOOL, tag=0),
)

REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD = Layout(
    "RemoteLogSegmentMetadataUpdateRecord", type_id=1
).of(
    Field("remoteLogSegmentId", _REMOTE_LOG_SEGMENT_ID_ENTRY),
    Field("brokerId", INT32),
    Field("eventTimestampMs", INT64),
    Field("customMetadata", BYTES, nullable="0+", default=None),
    Field("remoteLogSegmentState", INT8),
)

REMOTE_PARTITION_DELETE_METADATA_RECORD = Layout(
    "RemotePartitionDeleteMetadataRecord", type_id=2
).of(
    Field("topicIdPartition", _TOPIC_ID_PARTITION_ENTRY),
    Field("brokerId", INT32),
    Field("eventTimestampMs", INT64),
    Field("remotePartitionDeleteState", INT8),
)

REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD = Layout(
    "RemoteLogSegmentMetadataSnapshotRecord", type_id=3
).of(
    Field("segmentId", UUID),
    Field("startOffset", INT64),
    Field("endOffset", INT64),
    Field("brokerId", INT32),
    Field("maxTimestampMs", INT64),
    Field("eventTimestampMs", INT64),
    Field("segmentLeaderEpochs", Array(_SEGMENT_LEADER_EPOCH_ENTRY)),
    Field("segmentSizeInBytes", INT32),
    Field("customMetadata", BYTES, nullable="0+", default=None),
    Field("remoteLogSegmentState", INT8),
    Field("txnIndexEmpty", BOOL, tag=0),
)

RECORDS = (
    REMOTE_LOG_SEGMENT_METADATA_RECORD,
    REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD,
    REMOTE_PARTITION_DELETE_METADATA_RECORD,
    REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD,
)
