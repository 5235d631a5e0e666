"""The records of ``__consumer_offsets`` that streams groups write.

Source: the messages of org.apache.kafka.coordinator.group.generated, Kafka 4.3.1.
"""

from kafka_segments.generated.layout import (
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    Array,
    Field,
    KeyedLayouts,
    Layout,
    Struct,
)

STREAMS_GROUP_METADATA_KEY = Layout("StreamsGroupMetadataKey", type_id=17, flexible="").of(
    Field("groupId", STRING),
)

_LAST_ASSIGNMENT_CONFIG = Struct("LastAssignmentConfig").of(
    Field("key", STRING),
    Field("value", STRING),
)

STREAMS_GROUP_METADATA_VALUE = Layout("StreamsGroupMetadataValue", type_id=17).of(
    Field("epoch", INT32),
    Field("metadataHash", INT64),
    Field("validatedTopologyEpoch", INT32, tag=0, default=-1),
    Field("lastAssignmentConfigs", Array(_LAST_ASSIGNMENT_CONFIG), nullable="0+", tag=1),
)

STREAMS_GROUP_MEMBER_METADATA_KEY = Layout(
    "StreamsGroupMemberMetadataKey", type_id=19, flexible=""
).of(
    Field("groupId", STRING),
    Field("memberId", STRING),
)

_ENDPOINT = Struct("Endpoint").of(
    Field("host", STRING),
    Field("port", UINT16),
)

_KEY_VALUE = Struct("KeyValue").of(
    Field("key", STRING),
    Field("value", STRING),
)

STREAMS_GROUP_MEMBER_METADATA_VALUE = Layout("StreamsGroupMemberMetadataValue", type_id=19).of(
    Field("instanceId", STRING, nullable="0+"),
    Field("rackId", STRING, nullable="0+"),
    Field("clientId", STRING),
    Field("clientHost", STRING),
    Field("rebalanceTimeoutMs", INT32, default=-1),
    Field("topologyEpoch", INT32),
    Field("processId", STRING),
    Field("userEndpoint", _ENDPOINT, nullable="0+", default=None),
    Field("clientTags", Array(_KEY_VALUE)),
)

STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = Layout(
    "StreamsGroupTargetAssignmentMetadataKey", type_id=20, flexible=""
).of(
    Field("groupId", STRING),
)

STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = Layout(
    "StreamsGroupTargetAssignmentMetadataValue", type_id=20
).of(
    Field("assignmentEpoch", INT32),
    Field("assignmentTimestamp", INT64, tag=0),
)

STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = Layout(
    "StreamsGroupTargetAssignmentMemberKey", type_id=21, flexible=""
).of(
    Field("groupId", STRING),
    Field("memberId", STRING),
)

_TASK_IDS = Struct("TaskIds").of(
    Field("subtopologyId", STRING),
    Field("partitions", Array(INT32)),
)

STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = Layout(
    "StreamsGroupTargetAssignmentMemberValue", type_id=21
).of(
    Field("activeTasks", Array(_TASK_IDS)),
    Field("standbyTasks", Array(_TASK_IDS)),
    Field("warmupTasks", Array(_TASK_IDS)),
)

STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = Layout(
    "StreamsGroupCurrentMemberAssignmentKey", type_id=22, flexible=""
).of(
    Field("groupId", STRING),
    Field("memberId", STRING),
)

_TASK_IDS_WITH_EPOCHS = Struct("TaskIds").of(
    Field("subtopologyId", STRING),
    Field("partitions", Array(INT32)),
    Field("assignmentEpochs", Array(INT32), nullable="0+", tag=0),
)

STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = Layout(
    "StreamsGroupCurrentMemberAssignmentValue", type_id=22
).of(
    Field("memberEpoch", INT32),
    Field("previousMemberEpoch", INT32),
    Field("state", INT8),
    Field("activeTasks", Array(_TASK_IDS_WITH_EPOCHS)),
    Field("standbyTasks", Array(_TASK_IDS_WITH_EPOCHS)),
    Field("warmupTasks", Array(_TASK_IDS_WITH_EPOCHS)),
    Field("activeTasksPendingRevocation", Array(_TASK_IDS_WITH_EPOCHS)),
    Field("standbyTasksPendingRevocation", Array(_TASK_IDS_WITH_EPOCHS)),
    Field("warmupTasksPendingRevocation", Array(_TASK_IDS_WITH_EPOCHS)),
)

STREAMS_GROUP_TOPOLOGY_KEY = Layout("StreamsGroupTopologyKey", type_id=23, flexible="").of(
    Field("groupId", STRING),
)

_TOPIC_CONFIG = Struct("TopicConfig").of(
    Field("key", STRING),
    Field("value", STRING),
)

_TOPIC_INFO = Struct("TopicInfo").of(
    Field("name", STRING),
    Field("partitions", INT32),
    Field("replicationFactor", INT16),
    Field("topicConfigs", Array(_TOPIC_CONFIG)),
)

_COPARTITION_GROUP = Struct("CopartitionGroup").of(
    Field("sourceTopics", Array(INT16)),
    Field("sourceTopicRegex", Array(INT16)),
    Field("repartitionSourceTopics", Array(INT16)),
)

_SUBTOPOLOGY = Struct("Subtopology").of(
    Field("subtopologyId", STRING),
    Field("sourceTopics", Array(STRING)),
    Field("sourceTopicRegex", Array(STRING)),
    Field("stateChangelogTopics", Array(_TOPIC_INFO)),
    Field("repartitionSinkTopics", Array(STRING)),
    Field("repartitionSourceTopics", Array(_TOPIC_INFO)),
    Field("copartitionGroups", Array(_COPARTITION_GROUP)),
)

STREAMS_GROUP_TOPOLOGY_VALUE = Layout("StreamsGroupTopologyValue", type_id=23).of(
    Field("epoch", INT32),
    Field("subtopologies", Array(_SUBTOPOLOGY)),
)

RECORDS = (
    KeyedLayouts(STREAMS_GROUP_METADATA_KEY, STREAMS_GROUP_METADATA_VALUE),
    KeyedLayouts(STREAMS_GROUP_MEMBER_METADATA_KEY, STREAMS_GROUP_MEMBER_METADATA_VALUE),
    KeyedLayouts(
        STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY, STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE
    ),
    KeyedLayouts(
        STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY, STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE
    ),
    KeyedLayouts(
        STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY, STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE
    ),
    KeyedLayouts(STREAMS_GROUP_TOPOLOGY_KEY, STREAMS_GROUP_TOPOLOGY_VALUE),
)
