"""The records of ``__share_group_state``.

Source: the messages of org.apache.kafka.coordinator.share.generated, Kafka 4.3.1.
"""

from kafka_segments.generated.layout import (
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    Array,
    Field,
    KeyedLayouts,
    Layout,
    Struct,
)

SHARE_SNAPSHOT_KEY = Layout("ShareSnapshotKey", type_id=0, flexible="").of(
    Field("groupId", STRING),
    Field("topicId", UUID),
    Field("partition", INT32),
)

_STATE_BATCH = Struct("StateBatch").of(
    Field("firstOffset", INT64),
    Field("lastOffset", INT64),
    Field("deliveryState", INT8),
    Field("deliveryCount", INT16),
)

SHARE_SNAPSHOT_VALUE = Layout("ShareSnapshotValue", type_id=0).of(
    Field("snapshotEpoch", INT32),
    Field("stateEpoch", INT32),
    Field("leaderEpoch", INT32),
    Field("startOffset", INT64),
    Field("deliveryCompleteCount", INT32, tag=0, default=-1),
    Field("createTimestamp", INT64),
    Field("writeTimestamp", INT64),
    Field("stateBatches", Array(_STATE_BATCH)),
)

SHARE_UPDATE_KEY = Layout("ShareUpdateKey", type_id=1, flexible="").of(
    Field("groupId", STRING),
    Field("topicId", UUID),
    Field("partition", INT32),
)

SHARE_UPDATE_VALUE = Layout("ShareUpdateValue", type_id=1).of(
    Field("snapshotEpoch", INT32),
    Field("leaderEpoch", INT32),
    Field("startOffset", INT64),
    Field("deliveryCompleteCount", INT32, tag=0, default=-1),
    Field("stateBatches", Array(_STATE_BATCH)),
)

RECORDS = (
    KeyedLayouts(SHARE_SNAPSHOT_KEY, SHARE_SNAPSHOT_VALUE),
    KeyedLayouts(SHARE_UPDATE_KEY, SHARE_UPDATE_VALUE),
)
