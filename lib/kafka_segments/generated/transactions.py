"""The records of ``__transaction_state``.

Source: the messages of org.apache.kafka.coordinator.transaction.generated, Kafka 4.3.1.
"""

from kafka_segments.generated.layout import (
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Array,
    Field,
    KeyedLayouts,
    Layout,
    Struct,
)

TRANSACTION_LOG_KEY = Layout("TransactionLogKey", type_id=0, flexible="").of(
    Field("transactionalId", STRING),
)

_PARTITIONS_SCHEMA = Struct("PartitionsSchema").of(
    Field("topic", STRING),
    Field("partitionIds", Array(INT32)),
)

TRANSACTION_LOG_VALUE = Layout("TransactionLogValue", type_id=0, versions="0-1", flexible="1+").of(
    Field("producerId", INT64),
    Field("previousProducerId", INT64, "1+", tag=0, default=-1),
    Field("nextProducerId", INT64, "1+", tag=1, default=-1),
    Field("producerEpoch", INT16),
    Field("nextProducerEpoch", INT16, "1+", tag=3, default=-1),
    Field("transactionTimeoutMs", INT32),
    Field("transactionStatus", INT8),
    Field("transactionPartitions", Array(_PARTITIONS_SCHEMA), nullable="0+"),
    Field("transactionLastUpdateTimestampMs", INT64),
    Field("transactionStartTimestampMs", INT64),
    Field("clientTransactionVersion", INT16, "1+", tag=2),
)

RECORDS = (KeyedLayouts(TRANSACTION_LOG_KEY, TRANSACTION_LOG_VALUE),)
