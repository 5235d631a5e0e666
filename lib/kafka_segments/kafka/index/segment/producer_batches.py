"""Batches with a producer id as rows of a table: its columns, and the kinds of batches."""

# Columns of a batch with a producer id (int64).
AT_POSITION = 0
PRODUCER_ID = 1
EPOCH = 2
FIRST_OFFSET = 3
LAST_OFFSET = 4
LAST_SEQUENCE = 5
TIMESTAMP = 6  # ms: of data the greatest, of a marker its record's
KIND = 7
COORDINATOR_EPOCH = 8  # of a marker
BATCH_COLUMNS = 9

# Values of KIND.
DATA = 0
TRANSACTIONAL_DATA = 1
COMMIT = 2
ABORT = 3
EMPTY_CONTROL = 4  # a marker whose transaction compaction took out
UNUSUAL = -1  # for decode_marker to say
