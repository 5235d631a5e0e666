"""The records of ``__cluster_metadata``, by their type numbers.

Source: the messages of org.apache.kafka.common.metadata, Kafka 4.3.1.
"""

from kafka_segments.generated.layout import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Array,
    Field,
    Layout,
    Struct,
)

_BROKER_ENDPOINT = Struct("BrokerEndpoint").of(
    Field("name", STRING),
    Field("host", STRING),
    Field("port", UINT16),
    Field("securityProtocol", INT16),
)

_BROKER_FEATURE = Struct("BrokerFeature").of(
    Field("name", STRING),
    Field("minSupportedVersion", INT16),
    Field("maxSupportedVersion", INT16),
)

REGISTER_BROKER_RECORD = Layout("RegisterBrokerRecord", type_id=0, versions="0-4").of(
    Field("brokerId", INT32),
    Field("isMigratingZkBroker", BOOL, "2+"),
    Field("incarnationId", UUID),
    Field("brokerEpoch", INT64),
    Field("endPoints", Array(_BROKER_ENDPOINT)),
    Field("features", Array(_BROKER_FEATURE)),
    Field("rack", STRING, nullable="0+"),
    Field("fenced", BOOL, default=True),
    Field("inControlledShutdown", BOOL, "1+"),
    Field("logDirs", Array(UUID), "3+", tag=0),
    Field("cordonedLogDirs", Array(UUID), "4+", nullable="4+", tag=1, default=None),
)

UNREGISTER_BROKER_RECORD = Layout("UnregisterBrokerRecord", type_id=1).of(
    Field("brokerId", INT32),
    Field("brokerEpoch", INT64),
)

TOPIC_RECORD = Layout("TopicRecord", type_id=2).of(
    Field("name", STRING),
    Field("topicId", UUID),
)

PARTITION_RECORD = Layout("PartitionRecord", type_id=3, versions="0-2").of(
    Field("partitionId", INT32, default=-1),
    Field("topicId", UUID),
    Field("replicas", Array(INT32)),
    Field("isr", Array(INT32)),
    Field("removingReplicas", Array(INT32)),
    Field("addingReplicas", Array(INT32)),
    Field("leader", INT32, default=-1),
    Field("leaderRecoveryState", INT8, tag=0),
    Field("leaderEpoch", INT32, default=-1),
    Field("partitionEpoch", INT32, default=-1),
    Field("directories", Array(UUID), "1+"),
    Field("eligibleLeaderReplicas", Array(INT32), "2+", nullable="2+", tag=1, default=None),
    Field("lastKnownElr", Array(INT32), "2+", nullable="2+", tag=2, default=None),
)

CONFIG_RECORD = Layout("ConfigRecord", type_id=4).of(
    Field("resourceType", INT8),
    Field("resourceName", STRING),
    Field("name", STRING),
    Field("value", STRING, nullable="0+"),
)

PARTITION_CHANGE_RECORD = Layout("PartitionChangeRecord", type_id=5, versions="0-2").of(
    Field("partitionId", INT32, default=-1),
    Field("topicId", UUID),
    Field("isr", Array(INT32), nullable="0+", tag=0, default=None),
    Field("leader", INT32, tag=1, default=-2),
    Field("replicas", Array(INT32), nullable="0+", tag=2, default=None),
    Field("removingReplicas", Array(INT32), nullable="0+", tag=3, default=None),
    Field("addingReplicas", Array(INT32), nullable="0+", tag=4, default=None),
    Field("leaderRecoveryState", INT8, tag=5, default=-1),
    Field("directories", Array(UUID), "1+", nullable="1+", tag=8, default=None),
    Field("eligibleLeaderReplicas", Array(INT32), "2+", nullable="2+", tag=6, default=None),
    Field("lastKnownElr", Array(INT32), "2+", nullable="2+", tag=7, default=None),
)

FENCE_BROKER_RECORD = Layout("FenceBrokerRecord", type_id=7).of(
    Field("id", INT32),
    Field("epoch", INT64),
)

UNFENCE_BROKER_RECORD = Layout("UnfenceBrokerRecord", type_id=8).of(
    Field("id", INT32),
    Field("epoch", INT64),
)

REMOVE_TOPIC_RECORD = Layout("RemoveTopicRecord", type_id=9).of(
    Field("topicId", UUID),
)

DELEGATION_TOKEN_RECORD = Layout("DelegationTokenRecord", type_id=10).of(
    Field("owner", STRING),
    Field("requester", STRING),
    Field("renewers", Array(STRING)),
    Field("issueTimestamp", INT64),
    Field("maxTimestamp", INT64),
    Field("expirationTimestamp", INT64),
    Field("tokenId", STRING),
)

USER_SCRAM_CREDENTIAL_RECORD = Layout("UserScramCredentialRecord", type_id=11).of(
    Field("name", STRING),
    Field("mechanism", INT8),
    Field("salt", BYTES),
    Field("storedKey", BYTES),
    Field("serverKey", BYTES),
    Field("iterations", INT32),
)

FEATURE_LEVEL_RECORD = Layout("FeatureLevelRecord", type_id=12).of(
    Field("name", STRING),
    Field("featureLevel", INT16),
)

_ENTITY_DATA = Struct("EntityData").of(
    Field("entityType", STRING),
    Field("entityName", STRING, nullable="0+"),
)

CLIENT_QUOTA_RECORD = Layout("ClientQuotaRecord", type_id=14).of(
    Field("entity", Array(_ENTITY_DATA)),
    Field("key", STRING),
    Field("value", FLOAT64),
    Field("remove", BOOL),
)

PRODUCER_IDS_RECORD = Layout("ProducerIdsRecord", type_id=15).of(
    Field("brokerId", INT32),
    Field("brokerEpoch", INT64, default=-1),
    Field("nextProducerId", INT64),
)

BROKER_REGISTRATION_CHANGE_RECORD = Layout(
    "BrokerRegistrationChangeRecord", type_id=17, versions="0-3"
).of(
    Field("brokerId", INT32),
    Field("brokerEpoch", INT64),
    Field("fenced", INT8, tag=0),
    Field("inControlledShutdown", INT8, "1+", tag=1),
    Field("logDirs", Array(UUID), "2+", tag=2),
    Field("cordonedLogDirs", Array(UUID), "3+", nullable="3+", tag=3, default=None),
)

ACCESS_CONTROL_ENTRY_RECORD = Layout("AccessControlEntryRecord", type_id=18).of(
    Field("id", UUID),
    Field("resourceType", INT8),
    Field("resourceName", STRING),
    Field("patternType", INT8),
    Field("principal", STRING),
    Field("host", STRING),
    Field("operation", INT8),
    Field("permissionType", INT8),
)

REMOVE_ACCESS_CONTROL_ENTRY_RECORD = Layout("RemoveAccessControlEntryRecord", type_id=19).of(
    Field("id", UUID),
)

NO_OP_RECORD = Layout("NoOpRecord", type_id=20)

ZK_MIGRATION_STATE_RECORD = Layout("ZkMigrationStateRecord", type_id=21).of(
    Field("zkMigrationState", INT8),
)

REMOVE_USER_SCRAM_CREDENTIAL_RECORD = Layout("RemoveUserScramCredentialRecord", type_id=22).of(
    Field("name", STRING),
    Field("mechanism", INT8),
)

BEGIN_TRANSACTION_RECORD = Layout("BeginTransactionRecord", type_id=23).of(
    Field("name", STRING, nullable="0+", tag=0, default=None),
)

END_TRANSACTION_RECORD = Layout("EndTransactionRecord", type_id=24)

ABORT_TRANSACTION_RECORD = Layout("AbortTransactionRecord", type_id=25).of(
    Field("reason", STRING, nullable="0+", tag=0, default=None),
)

REMOVE_DELEGATION_TOKEN_RECORD = Layout("RemoveDelegationTokenRecord", type_id=26).of(
    Field("tokenId", STRING),
)

_CONTROLLER_ENDPOINT = Struct("ControllerEndpoint").of(
    Field("name", STRING),
    Field("host", STRING),
    Field("port", UINT16),
    Field("securityProtocol", INT16),
)

_CONTROLLER_FEATURE = Struct("ControllerFeature").of(
    Field("name", STRING),
    Field("minSupportedVersion", INT16),
    Field("maxSupportedVersion", INT16),
)

REGISTER_CONTROLLER_RECORD = Layout("RegisterControllerRecord", type_id=27).of(
    Field("controllerId", INT32),
    Field("incarnationId", UUID),
    Field("zkMigrationReady", BOOL),
    Field("endPoints", Array(_CONTROLLER_ENDPOINT)),
    Field("features", Array(_CONTROLLER_FEATURE)),
)

CLEAR_ELR_RECORD = Layout("ClearElrRecord", type_id=28).of(
    Field("topicName", STRING),
)

RECORDS = (
    REGISTER_BROKER_RECORD,
    UNREGISTER_BROKER_RECORD,
    TOPIC_RECORD,
    PARTITION_RECORD,
    CONFIG_RECORD,
    PARTITION_CHANGE_RECORD,
    FENCE_BROKER_RECORD,
    UNFENCE_BROKER_RECORD,
    REMOVE_TOPIC_RECORD,
    DELEGATION_TOKEN_RECORD,
    USER_SCRAM_CREDENTIAL_RECORD,
    FEATURE_LEVEL_RECORD,
    CLIENT_QUOTA_RECORD,
    PRODUCER_IDS_RECORD,
    BROKER_REGISTRATION_CHANGE_RECORD,
    ACCESS_CONTROL_ENTRY_RECORD,
    REMOVE_ACCESS_CONTROL_ENTRY_RECORD,
    NO_OP_RECORD,
    ZK_MIGRATION_STATE_RECORD,
    REMOVE_USER_SCRAM_CREDENTIAL_RECORD,
    BEGIN_TRANSACTION_RECORD,
    END_TRANSACTION_RECORD,
    ABORT_TRANSACTION_RECORD,
    REMOVE_DELEGATION_TOKEN_RECORD,
    REGISTER_CONTROLLER_RECORD,
    CLEAR_ELR_RECORD,
)
