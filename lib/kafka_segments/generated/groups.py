"""The records of ``__consumer_offsets``: commits, classic groups and consumer groups.

Source: the messages of org.apache.kafka.coordinator.group.generated, Kafka 4.3.1.
"""

from kafka_segments.generated.layout import (
    BYTES,
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

LEGACY_OFFSET_COMMIT_KEY = Layout("LegacyOffsetCommitKey", type_id=0, flexible="").of(
    Field("group", STRING),
    Field("topic", STRING),
    Field("partition", INT32),
)

LEGACY_OFFSET_COMMIT_VALUE = Layout("LegacyOffsetCommitValue", type_id=0, flexible="").of(
    Field("offset", INT64),
    Field("metadata", STRING),
    Field("commitTimestamp", INT64),
)

OFFSET_COMMIT_KEY = Layout("OffsetCommitKey", type_id=1, flexible="").of(
    Field("group", STRING),
    Field("topic", STRING),
    Field("partition", INT32),
)

OFFSET_COMMIT_VALUE = Layout("OffsetCommitValue", type_id=1, versions="0-4", flexible="4+").of(
    Field("offset", INT64),
    Field("leaderEpoch", INT32, "3+", default=-1),
    Field("metadata", STRING),
    Field("commitTimestamp", INT64),
    Field("expireTimestamp", INT64, "1", default=-1),
    Field("topicId", UUID, "4+", tag=0),
)

GROUP_METADATA_KEY = Layout("GroupMetadataKey", type_id=2, flexible="").of(
    Field("group", STRING),
)

_MEMBER_METADATA = Struct("MemberMetadata").of(
    Field("memberId", STRING),
    Field("groupInstanceId", STRING, "3+", nullable="3+", default=None),
    Field("clientId", STRING),
    Field("clientHost", STRING),
    Field("rebalanceTimeout", INT32, "1+", default=-1),
    Field("sessionTimeout", INT32),
    Field("subscription", BYTES),
    Field("assignment", BYTES),
)

GROUP_METADATA_VALUE = Layout("GroupMetadataValue", type_id=2, versions="0-4", flexible="4+").of(
    Field("protocolType", STRING),
    Field("generation", INT32),
    Field("protocol", STRING, nullable="0+"),
    Field("leader", STRING, nullable="0+"),
    Field("currentStateTimestamp", INT64, "2+", default=-1),
    Field("members", Array(_MEMBER_METADATA)),
)

CONSUMER_GROUP_METADATA_KEY = Layout("ConsumerGroupMetadataKey", type_id=3, flexible="").of(
    Field("groupId", STRING),
)

CONSUMER_GROUP_METADATA_VALUE = Layout("ConsumerGroupMetadataValue", type_id=3).of(
    Field("epoch", INT32),
    Field("metadataHash", INT64, tag=0),
)

CONSUMER_GROUP_PARTITION_METADATA_KEY = Layout(
    "ConsumerGroupPartitionMetadataKey", type_id=4, flexible=""
).of(
    Field("groupId", STRING),
)

_PARTITION_METADATA = Struct("PartitionMetadata").of(
    Field("partition", INT32),
    Field("racks", Array(STRING)),
)

_TOPIC_METADATA = Struct("TopicMetadata").of(
    Field("topicId", UUID),
    Field("topicName", STRING),
    Field("numPartitions", INT32),
    Field("partitionMetadata", Array(_PARTITION_METADATA)),
)

CONSUMER_GROUP_PARTITION_METADATA_VALUE = Layout(
    "ConsumerGroupPartitionMetadataValue", type_id=4
).of(
    Field("topics", Array(_TOPIC_METADATA)),
)

CONSUMER_GROUP_MEMBER_METADATA_KEY = Layout(
    "ConsumerGroupMemberMetadataKey", type_id=5, flexible=""
).of(
    Field("groupId", STRING),
    Field("memberId", STRING),
)

_CLASSIC_PROTOCOL = Struct("ClassicProtocol").of(
    Field("name", STRING),
    Field("metadata", BYTES),
)

_CLASSIC_MEMBER_METADATA = Struct("ClassicMemberMetadata").of(
    Field("sessionTimeoutMs", INT32),
    Field("supportedProtocols", Array(_CLASSIC_PROTOCOL)),
)

CONSUMER_GROUP_MEMBER_METADATA_VALUE = Layout("ConsumerGroupMemberMetadataValue", type_id=5).of(
    Field("instanceId", STRING, nullable="0+"),
    Field("rackId", STRING, nullable="0+"),
    Field("clientId", STRING),
    Field("clientHost", STRING),
    Field("subscribedTopicNames", Array(STRING)),
    Field("subscribedTopicRegex", STRING, nullable="0+"),
    Field("rebalanceTimeoutMs", INT32, default=-1),
    Field("serverAssignor", STRING, nullable="0+"),
    Field("classicMemberMetadata", _CLASSIC_MEMBER_METADATA, nullable="0+", tag=0),
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = Layout(
    "ConsumerGroupTargetAssignmentMetadataKey", type_id=6, flexible=""
).of(
    Field("groupId", STRING),
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = Layout(
    "ConsumerGroupTargetAssignmentMetadataValue", type_id=6
).of(
    Field("assignmentEpoch", INT32),
    Field("assignmentTimestamp", INT64, tag=0),
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = Layout(
    "ConsumerGroupTargetAssignmentMemberKey", type_id=7, flexible=""
).of(
    Field("groupId", STRING),
    Field("memberId", STRING),
)

_TOPIC_PARTITION = Struct("TopicPartition").of(
    Field("topicId", UUID),
    Field("partitions", Array(INT32)),
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = Layout(
    "ConsumerGroupTargetAssignmentMemberValue", type_id=7
).of(
    Field("topicPartitions", Array(_TOPIC_PARTITION)),
)

CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = Layout(
    "ConsumerGroupCurrentMemberAssignmentKey", type_id=8, flexible=""
).of(
    Field("groupId", STRING),
    Field("memberId", STRING),
)

_TOPIC_PARTITIONS = Struct("TopicPartitions").of(
    Field("topicId", UUID),
    Field("partitions", Array(INT32)),
    Field("assignmentEpochs", Array(INT32), nullable="0+", tag=0),
)

CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = Layout(
    "ConsumerGroupCurrentMemberAssignmentValue", type_id=8
).of(
    Field("memberEpoch", INT32),
    Field("previousMemberEpoch", INT32),
    Field("state", INT8),
    Field("assignedPartitions", Array(_TOPIC_PARTITIONS)),
    Field("partitionsPendingRevocation", Array(_TOPIC_PARTITIONS)),
)

CONSUMER_GROUP_REGULAR_EXPRESSION_KEY = Layout(
    "ConsumerGroupRegularExpressionKey", type_id=16, flexible=""
).of(
    Field("groupId", STRING),
    Field("regularExpression", STRING),
)

CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE = Layout(
    "ConsumerGroupRegularExpressionValue", type_id=16
).of(
    Field("topics", Array(STRING)),
    Field("version", INT64),
    Field("timestamp", INT64),
)

RECORDS = (
    KeyedLayouts(LEGACY_OFFSET_COMMIT_KEY, LEGACY_OFFSET_COMMIT_VALUE),
    KeyedLayouts(OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE),
    KeyedLayouts(GROUP_METADATA_KEY, GROUP_METADATA_VALUE),
    KeyedLayouts(CONSUMER_GROUP_METADATA_KEY, CONSUMER_GROUP_METADATA_VALUE),
    KeyedLayouts(CONSUMER_GROUP_PARTITION_METADATA_KEY, CONSUMER_GROUP_PARTITION_METADATA_VALUE),
    KeyedLayouts(CONSUMER_GROUP_MEMBER_METADATA_KEY, CONSUMER_GROUP_MEMBER_METADATA_VALUE),
    KeyedLayouts(
        CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
        CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    ),
    KeyedLayouts(
        CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY, CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE
    ),
    KeyedLayouts(
        CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY, CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE
    ),
    KeyedLayouts(CONSUMER_GROUP_REGULAR_EXPRESSION_KEY, CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE),
)
