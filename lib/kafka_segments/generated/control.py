"""Control records: the end of a transaction, and what KRaft says of itself; by their types.

Source: the messages of org.apache.kafka.common.message, ControlRecordType, Kafka 4.3.1.
"""

from kafka_segments.generated.layout import (
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

CONTROL_RECORD_TYPE_SCHEMA = Layout("ControlRecordTypeSchema", flexible="").of(
    Field("type", INT16),
)

END_TXN_MARKER = Layout("EndTxnMarker", flexible="").of(
    Field("coordinatorEpoch", INT32),
)

_VOTER = Struct("Voter").of(
    Field("voterId", INT32),
    Field("voterDirectoryId", UUID, "1+"),
)

LEADER_CHANGE_MESSAGE = Layout("LeaderChangeMessage", versions="0-1").of(
    Field("version", INT16),
    Field("leaderId", INT32),
    Field("voters", Array(_VOTER)),
    Field("grantingVoters", Array(_VOTER)),
)

SNAPSHOT_HEADER_RECORD = Layout("SnapshotHeaderRecord").of(
    Field("version", INT16),
    Field("lastContainedLogTimestamp", INT64),
)

SNAPSHOT_FOOTER_RECORD = Layout("SnapshotFooterRecord").of(
    Field("version", INT16),
)

KRAFT_VERSION_RECORD = Layout("KRaftVersionRecord").of(
    Field("version", INT16),
    Field("kRaftVersion", INT16),
)

_ENDPOINT = Struct("Endpoint").of(
    Field("name", STRING),
    Field("host", STRING),
    Field("port", UINT16),
)

_KRAFT_VERSION_FEATURE = Struct("KRaftVersionFeature").of(
    Field("minSupportedVersion", INT16),
    Field("maxSupportedVersion", INT16),
)

_VOTERS_VOTER = Struct("Voter").of(
    Field("voterId", INT32),
    Field("voterDirectoryId", UUID),
    Field("endpoints", Array(_ENDPOINT)),
    Field("kRaftVersionFeature", _KRAFT_VERSION_FEATURE),
)

VOTERS_RECORD = Layout("VotersRecord").of(
    Field("version", INT16),
    Field("voters", Array(_VOTERS_VOTER)),
)

ABORT, COMMIT = 0, 1
RECORDS = {
    ABORT: END_TXN_MARKER,
    COMMIT: END_TXN_MARKER,
    2: LEADER_CHANGE_MESSAGE,
    3: SNAPSHOT_HEADER_RECORD,
    4: SNAPSHOT_FOOTER_RECORD,
    5: KRAFT_VERSION_RECORD,
    6: VOTERS_RECORD,
}
