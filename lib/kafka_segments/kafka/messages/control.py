"""Control records: the end of a transaction, and what KRaft says of itself; by their types.

Source: ControlRecordType.
"""

from kafka_segments.kafka.messages.messages import LAYOUTS

TYPE_SCHEMA = LAYOUTS["ControlRecordTypeSchema"]
END_TXN_MARKER = LAYOUTS["EndTxnMarker"]
SNAPSHOT_HEADER = LAYOUTS["SnapshotHeaderRecord"]
SNAPSHOT_FOOTER = LAYOUTS["SnapshotFooterRecord"]
VOTERS = LAYOUTS["VotersRecord"]
ABORT, COMMIT = 0, 1
RECORDS = {
    ABORT: END_TXN_MARKER,
    COMMIT: END_TXN_MARKER,
    2: LAYOUTS["LeaderChangeMessage"],
    3: SNAPSHOT_HEADER,
    4: SNAPSHOT_FOOTER,
    5: LAYOUTS["KRaftVersionRecord"],
    6: VOTERS,
}
