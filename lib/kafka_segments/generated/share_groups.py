"""The records of ``__consumer_offsets`` that share groups write.

Source: the messages of org.apache.kafka.coordinator.group.generated, Kafka 4.3.1.
"""

from kafka_segments.generated.layout import (
    INT8,
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

SHARE_GROUP_MEMBER_METADATA_KEY = Layout("ShareGroupMemberMetadataKey", type_id=10, flexible="").of(
    Field("groupId", STRING),
    Field("memberId", STRING),
)

SHARE_GROUP_MEMBER_METADATA_VALUE = Layout("ShareGroupMemberMetadataValue", type_id=10).of(
    Field("rackId", STRING, nullable="0+"),
    Field("clientId", STRING),
    Field("clientHost", STRING),
    Field("subscribedTopicNames", Array(STRING)),
)

SHARE_GROUP_METADATA_KEY = Layout("ShareGroupMetadataKey", type_id=11, flexible="").of(
    Field("groupId", STRING),
)

SHARE_GROUP_METADATA_VALUE = Layout("ShareGroupMetadataValue", type_id=11).of(
    Field("epoch", INT32),
    Field("metadataHash", INT64),
)

SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = Layout(
    "ShareGroupTargetAssignmentMetadataKey", type_id=12, flexible=""
).of(
    Field("groupId", STRING),
)

SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = Layout(
    "ShareGroupTargetAssignmentMetadataValue", type_id=12
).of(
    Field("assignmentEpoch", INT32),
    Field("assignmentTimestamp", INT64, tag=0),
)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = Layout(
    "ShareGroupTargetAssignmentMemberKey", type_id=13, flexible=""
).of(
    Field("groupId", STRING),
    Field("memberId", STRING),
)

_TOPIC_PARTITION = Struct("TopicPartition").of(
    Field("topicId", UUID),
    Field("partitions", Array(INT32)),
)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = Layout(
    "ShareGroupTargetAssignmentMemberValue", type_id=13
).of(
    Field("topicPartitions", Array(_TOPIC_PARTITION)),
)

SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = Layout(
    "ShareGroupCurrentMemberAssignmentKey", type_id=14, flexible=""
).of(
    Field("groupId", STRING),
    Field("memberId", STRING),
)

_TOPIC_PARTITIONS = Struct("TopicPartitions").of(
    Field("topicId", UUID),
    Field("partitions", Array(INT32)),
)

SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = Layout(
    "ShareGroupCurrentMemberAssignmentValue", type_id=14
).of(
    Field("memberEpoch", INT32),
    Field("previousMemberEpoch", INT32),
    Field("state", INT8),
    Field("assignedPartitions", Array(_TOPIC_PARTITIONS)),
)

SHARE_GROUP_STATE_PARTITION_METADATA_KEY = Layout(
    "ShareGroupStatePartitionMetadataKey", type_id=15, flexible=""
).of(
    Field("groupId", STRING),
)

_TOPIC_PARTITIONS_INFO = Struct("TopicPartitionsInfo").of(
    Field("topicId", UUID),
    Field("topicName", STRING),
    Field("partitions", Array(INT32)),
)

_TOPIC_INFO = Struct("TopicInfo").of(
    Field("topicId", UUID),
    Field("topicName", STRING),
)

SHARE_GROUP_STATE_PARTITION_METADATA_VALUE = Layout(
    "ShareGroupStatePartitionMetadataValue", type_id=15
).of(
    Field("initializingTopics", Array(_TOPIC_PARTITIONS_INFO)),
    Field("initializedTopics", Array(_TOPIC_PARTITIONS_INFO)),
    Field("deletingTopics", Array(_TOPIC_INFO)),
)

RECORDS = (
    KeyedLayouts(SHARE_GROUP_MEMBER_METADATA_KEY, SHARE_GROUP_MEMBER_METADATA_VALUE),
    KeyedLayouts(SHARE_GROUP_METADATA_KEY, SHARE_GROUP_METADATA_VALUE),
    KeyedLayouts(
        SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY, SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE
    ),
    KeyedLayouts(
        SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY, SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE
    ),
    KeyedLayouts(
        SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY, SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE
    ),
    KeyedLayouts(
        SHARE_GROUP_STATE_PARTITION_METADATA_KEY, SHARE_GROUP_STATE_PARTITION_METADATA_VALUE
    ),
)
