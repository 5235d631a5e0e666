"""Where the fields of a batch's header lie: the one layout that every reader and writer shares.

A batch is a record batch v2, or a message v0 or v1 (a compressed one holds a message set).
The byte at 16 tells which::

    at  v2                                   v0, v1
     0  baseOffset            int64          offset       int64  (of the last inner message)
     8  batchLength           int32          size         int32  bytes after this field
    12  partitionLeaderEpoch  int32          crc          uint32 CRC-32 of byte 16 to the end
    16  magic                 int8           magic        int8
    17  crc                   uint32 CRC-32C attributes   int8
    18                        of byte 21     timestamp    int64  ms, v1 only
    21  attributes            int16  to end  keyLength    int32  at 18 in v0, at 26 in v1
    23  lastOffsetDelta       int32
    27  baseTimestamp         int64  ms; the delete horizon where attributes say so
    35  maxTimestamp          int64  ms
    43  producerId            int64
    51  producerEpoch         int16
    53  baseSequence          int32
    57  recordCount           int32
    61  records

Numbers are big-endian. Source: DefaultRecordBatch, LegacyRecord, Records.
"""

# Of every batch.
BASE_OFFSET = 0  # of a compressed message v0 or v1: the offset of its last inner message
LENGTH = 8  # bytes after this field
MAGIC = 16
UP_TO_MAGIC = 17  # bytes from the start of a batch to the end of its magic
LOG_OVERHEAD = 12  # bytes of offset and length, which the length does not count
MIN_LENGTH = 14  # the least that the length can say, by Kafka's check of it
MIN_BATCH_BYTES = LOG_OVERHEAD + MIN_LENGTH

# Of a record batch v2.
LEADER_EPOCH = 12
CRC = 17
CRC_FROM = 21  # the checksum covers every byte from here to the end of the batch
ATTRIBUTES_HIGH = 21
ATTRIBUTES = 22  # the low byte of the two, the only one in use
LAST_OFFSET_DELTA = 23
BASE_TIMESTAMP = 27
MAX_TIMESTAMP = 35
PRODUCER_ID = 43
PRODUCER_EPOCH = 51
BASE_SEQUENCE = 53
RECORD_COUNT = 57
HEADER_BYTES = 61  # a header of a message v0 or v1 is shorter

# Of a message v0 or v1.
LEGACY_CRC = 12
LEGACY_CRC_FROM = 16
LEGACY_ATTRIBUTES = 17
LEGACY_TIMESTAMP = 18  # v1 only
V0_KEY_LENGTH = 18
V1_KEY_LENGTH = 26

# Bits of the attributes.
CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

# Values of fields.
MAGIC_V2 = 2
NO_TIMESTAMP = -1
ABSENT = -1  # a leader epoch, producer id, producer epoch or sequence that is not there
