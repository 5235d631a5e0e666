"""Decide which open transactions hang, by what the logs have open and what the coordinator says."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.contradicted_keys import with_contradicted
from kafka_segments.engine.derived.replicas import (
    NOTHING_KNOWN,
    KnownReplicas,
    of_answering_replica,
)
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import LEAST, minus, plus
from kafka_segments.kafka.messages.messages import TRANSACTIONS
from kafka_segments.kafka.messages.records import TRANSACTIONS_TOPIC
from kafka_segments.verbs.find.internals.decide.rows import partition_name
from kafka_segments.verbs.find.internals.transactions.decide.state_logs import with_reading

HANGING, OVERDUE, ENDING, ONGOING = "hanging", "overdue", "ending", "ongoing"
NOT_KNOWN = "not known"
_STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("Dead", "PrepareEpochFence"),
)
_ONGOING, _PREPARED = "Ongoing", ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")
_OLDER = (
    "not known: the copy of the coordinator's log is older than the transaction; copy the disks of"
    " its brokers after those of the data, and read them again with `kafka-segments build"
    " --internals`"
)
_VALUE = (
    "producerId long, producerEpoch int, transactionTimeoutMs long, transactionStatus int,"
    " transactionPartitions array<struct<topic: string, partitionIds: array<int>>>,"
    " transactionStartTimestampMs long"
)
_KIND = TRANSACTIONS[0].kind
_OF_ID = ("state_offset", "state_problem")


def coordinators_say(
    known: KnownReplicas = NOTHING_KNOWN, keys: DataFrame | None = None
) -> Transform:
    """Return the last word of the transaction coordinator's log on each producer.

    1. A transactional id belongs to the producer that its last record names. Of several replicas
       the one that answers counts (``choose_replica``).
    2. A producer is forgotten if no id belongs to it any more, because a tombstone or a record of
       another producer came after its own. The last record that names it counts, in any replica:
       one may still hold what the cleaner has removed from another.

    Needs: rows of ``internal_records``; ``known``: what the tables know of their replicas;
        ``keys``: rows of ``contradicted_keys``, None: there are none.
    Gives: cluster, state_partition (of the coordinator's log), transactional_id, producer_id,
        coordinator_epoch (the producer's, as the coordinator has it), state, is_forgotten,
        timeout_ms, coordinator_start_ms (null: none), partitions (names), state_offset (of the last
        record of the id that is left in the replica that answers; null: none), state_problem (why
        that record tells nothing; null: it does).
    Source: TransactionState.
    """
    key = ["cluster", "key_json"]
    of_producer = Window.partitionBy("cluster", "_value.producerId").orderBy(F.desc("offset"))

    def transform(records: DataFrame) -> DataFrame:
        said = records.transform(_of_ids)
        said = said.withColumn("_value", F.from_json("value_json", _VALUE))
        of_id = {"state_offset": F.col("offset"), "state_problem": F.col("problem")}
        newest = said.transform(_last_of_ids(known, keys)).withColumns(of_id)
        last = newest.where("NOT is_tombstone").transform(_said(is_forgotten=False))
        earlier = (
            said.where("NOT is_tombstone")
            .withColumn("_turn", F.row_number().over(of_producer))
            .where("_turn = 1")
            .join(newest.select(*key, *_OF_ID), key, "left")
            .transform(_said(is_forgotten=True))
            .join(last.select("cluster", "producer_id"), ["cluster", "producer_id"], "left_anti")
        )
        return last.unionByName(earlier)

    return transform


def garbled_ids(known: KnownReplicas = NOTHING_KNOWN, keys: DataFrame | None = None) -> Transform:
    """Return the partitions of the coordinator's log with an id whose last record tells nothing.

    Needs, ``known``, ``keys``: as ``coordinators_say``.
    Gives: cluster, partition, garbled (why).
    """
    why = F.format_string("the record at offset %d tells nothing: %s", "offset", "problem")

    def transform(records: DataFrame) -> DataFrame:
        newest = records.transform(_of_ids).transform(_last_of_ids(known, keys))
        newest = newest.where("problem IS NOT NULL")
        return newest.groupBy("cluster", "partition").agg(F.min(why).alias("garbled"))

    return transform


def _of_ids(records: DataFrame) -> DataFrame:
    """Keep the coordinator's records whose transactional id is known."""
    is_named = (F.col("kind") == _KIND) & F.col("key_json").isNotNull()
    return records.where(F.col("topic") == TRANSACTIONS_TOPIC).where(is_named)


def _last_of_ids(known: KnownReplicas, keys: DataFrame | None) -> Transform:
    """Keep the last record of each transactional id in the replica that answers.

    ``problem`` is also why another copy has another record there.
    """
    problem = F.coalesce("problem", "contradicted")
    of_id = Window.partitionBy("cluster", "key_json").orderBy(F.desc("offset"))

    def transform(said: DataFrame) -> DataFrame:
        answering = said.transform(of_answering_replica(known)).transform(with_contradicted(keys))
        answering = answering.withColumn("problem", problem).drop("contradicted")
        return answering.withColumn("_turn", F.row_number().over(of_id)).where("_turn = 1")

    return transform


def _said(*, is_forgotten: bool) -> Transform:
    names = F.transform(
        "_value.transactionPartitions",
        lambda found: F.transform(
            found["partitionIds"],
            lambda number: F.concat_ws("-", found["topic"], number.cast("string")),
        ),
    )
    start_ms = F.col("_value.transactionStartTimestampMs")

    def transform(records: DataFrame) -> DataFrame:
        return records.select(
            "cluster",
            F.col("partition").alias("state_partition"),
            F.get_json_object("key_json", "$.transactionalId").alias("transactional_id"),
            F.col("_value.producerId").alias("producer_id"),
            F.col("_value.producerEpoch").alias("coordinator_epoch"),
            F.get(F.array(*map(F.lit, _STATES)), F.col("_value.transactionStatus")).alias("state"),
            F.lit(is_forgotten).alias("is_forgotten"),
            F.col("_value.transactionTimeoutMs").alias("timeout_ms"),
            F.when(start_ms >= 0, start_ms).alias("coordinator_start_ms"),
            F.coalesce(F.flatten(names), F.array().cast("array<string>")).alias("partitions"),
            *_OF_ID,
        )

    return transform


def ask_for_first(segments: DataFrame) -> Transform:
    """Ask for the first record of each open transaction, at the byte at which its batch begins.

    Needs: rows of ``open_transactions``; ``segments``: rows of ``segments``.
    Gives: the same, and what ``find_first_records`` needs.
    """
    of_file = ("path", "valid_bytes", "first_batch_timestamp_ms", "max_timestamp_ms")
    files = segments.select(*SEGMENT_KEYS, *of_file)
    asked = {
        "start_position": F.col("first_position"),
        "start_offset": F.lit(None).cast("long"),
        "least_timestamp_ms": F.lit(LEAST).cast("long"),
        "least_offset": F.col("first_offset"),
    }
    return lambda opened: opened.join(files, list(SEGMENT_KEYS), how="left").withColumns(asked)


def with_first_times(found: DataFrame) -> DataFrame:
    """Add the timestamp of each transaction's first record, and why its batch was not found.

    A segment that is gone or was replaced since the build does not tell that it is open still.

    Needs: first_offset, and what ``find_first_records`` gives.
    Gives: the same, first_ms (null: it was not read), first_doubt (null: its batch is there).
    """
    is_it = F.col("found_offset") == F.col("first_offset")
    is_there = is_it | (F.col("found_batch_offset") == F.col("first_offset"))
    other = F.format_string("%s: it no longer has offset %d", "path", "first_offset")
    why = F.concat(F.lit("not known: where it began was not found: "), F.coalesce("problem", other))
    return found.withColumns(
        {
            "first_ms": F.when(is_it, F.col("found_timestamp_ms")),
            "first_doubt": F.when(~F.coalesce(is_there, F.lit(False)), why),
        }
    )


def with_producers(segments: DataFrame) -> Transform:
    """Add to open transactions what their log last says of the producer.

    Needs: the key of a log, producer_id; ``segments``: rows of ``segments`` with log_end_offset.
    Gives: the same, and producer_epoch, last_ms, log_end_offset.
    """
    states = segments.select(*LOG_KEYS, "base_offset", "log_end_offset", F.inline("producers"))
    last = states.groupBy(*LOG_KEYS, "producer_id").agg(
        F.max_by("epoch", "base_offset").cast("int").alias("producer_epoch"),
        F.max_by("timestamp_ms", "base_offset").alias("last_ms"),
        F.first("log_end_offset").alias("log_end_offset"),
    )

    def transform(opened: DataFrame) -> DataFrame:
        return opened.join(last, [*LOG_KEYS, "producer_id"], how="left")

    return transform


def with_waiting_bytes(segments: DataFrame) -> Transform:
    """Add to open transactions how much of the log waits for their end.

    1. Readers of committed records wait before the transaction's first batch.
    2. The cleaner stops before the segment that has this batch, and takes no active segment.

    Needs: the key of a segment (in which the transaction begins), producer_id, first_position;
        ``segments``: rows of ``segments``.
    Gives: the same, held_bytes (from the first batch to the log's end), inactive_bytes (of segments
        from that one on that are not active).
    Source: LogCleanerManager.cleanableOffsets, calculateCleanableBytes.
    """
    behind = segments.select(
        *LOG_KEYS,
        F.col("base_offset").alias("_base"),
        F.coalesce("valid_bytes", "size_bytes").alias("_bytes"),
        F.when(~F.col("is_active"), F.col("size_bytes")).alias("_inactive"),
    )

    def transform(opened: DataFrame) -> DataFrame:
        of_log = opened.select(*SEGMENT_KEYS, "producer_id", "first_position")
        sums = (
            of_log.join(behind, list(LOG_KEYS))
            .where("_base >= base_offset")
            .groupBy(*LOG_KEYS, "producer_id")
            .agg(
                (F.sum("_bytes") - F.first("first_position")).alias("held_bytes"),
                F.coalesce(F.sum("_inactive"), F.lit(0)).alias("inactive_bytes"),
            )
        )
        return opened.join(sums, [*LOG_KEYS, "producer_id"], how="left")

    return transform


def with_log_doubts(replicas: DataFrame) -> Transform:
    """Add ``log_doubt``: why a log does not tell what is open in it; null: it does.

    The marker of a transaction that begins in front of lost records may be among these.

    Needs: the key of a log, first_offset, first_doubt; ``replicas``: the key of a log, log_doubt,
        lost (``lost_records``).
    """
    told = replicas.select(*LOG_KEYS, "log_doubt", F.col("lost").alias("_lost"))
    why = F.concat(F.lit("not known: its marker may be in what is missing: "), "_lost.why")
    is_in_front = F.col("first_offset") < F.col("_lost.until")

    def transform(opened: DataFrame) -> DataFrame:
        joined = opened.join(told, list(LOG_KEYS), how="left")
        doubt = F.coalesce("log_doubt", F.when(is_in_front, why), "first_doubt")
        return joined.withColumn("log_doubt", doubt).drop("_lost", "first_doubt")

    return transform


def with_cleanup_policy(topics: DataFrame, configs: DataFrame) -> Transform:
    """Add ``cleanup_policy``, as the metadata has it; null: it does not have the topic.

    It is the topic's, else log.cleanup.policy of the broker, else that of the whole cluster, else
    Kafka's default. What server.properties says is not known.

    Needs: cluster, topic, broker_id; ``topics``, ``configs``: rows of ``metadata_topics`` and
        ``metadata_configs`` that hold still.
    """
    named = configs.where(F.col("name").isin("cleanup.policy", "log.cleanup.policy"))
    of_topics = named.where("resource_type = 'topic'").select(
        "cluster", F.col("resource_name").alias("topic"), F.col("value").alias("_of_topic")
    )
    of_brokers = named.where("resource_type = 'broker'").select(
        "cluster", F.col("resource_name").alias("_broker"), F.col("value").alias("_of_broker")
    )
    known = topics.select("cluster", "topic", F.lit("delete").alias("_default")).distinct()
    of_cluster = of_brokers.where("_broker = ''").select(
        "cluster", F.col("_of_broker").alias("_of_cluster")
    )

    def transform(opened: DataFrame) -> DataFrame:
        joined = (
            opened.withColumn("_broker", F.col("broker_id").cast("string"))
            .join(known, ["cluster", "topic"], how="left")
            .join(of_topics, ["cluster", "topic"], how="left")
            .join(of_brokers, ["cluster", "_broker"], how="left")
            .join(of_cluster, ["cluster"], how="left")
        )
        policy = F.coalesce("_of_topic", "_of_broker", "_of_cluster", "_default")
        is_known = F.col("_default").isNotNull()
        told = joined.withColumn("cleanup_policy", F.when(is_known, policy))
        return told.drop("_broker", "_default", "_of_topic", "_of_broker", "_of_cluster")

    return transform


def decide_transactions(coordinators: DataFrame, judged: DataFrame, *, now_ms: int) -> Transform:
    """Decide for each transaction that a log has open whether anything will end it.

    1. It is *hanging* if the coordinator has no ongoing transaction of this producer, has one
       without this partition, or has forgotten the producer: nobody will write its marker.
    2. It is *ending* if the coordinator has decided, and its marker is still to be written.
    3. It is *overdue* if its timeout has passed: the coordinator aborts it once it runs.
    4. Else it is *ongoing*.
    5. It is *not known* if the log that has it open is in doubt, or if the partition of the
       coordinator's log that names the producer was not read soundly behind its id's last record,
       or from that record on.
       A producer never goes from one id to another: where no partition names it, that its
       transaction hangs is not known unless all were read, nor where the producer's partition
       (without one: each) is older than the transaction's first record.

    Needs: the key of a log, producer_id, producer_epoch, first_offset and first_ms (of the
        transaction's first record; null: it could not be read), last_ms (timestamp of the
        producer's last batch), log_end_offset, held_bytes, inactive_bytes, cleanup_policy;
        log_doubt (why the log does not tell; null: it does); ``coordinators``: rows of
        ``coordinators_say``; ``judged``: rows of ``judge_state_logs``.
    Gives: cluster, topic, partition, broker_id (of the replica), producer_id, producer_epoch,
        transactional_id (null: the coordinator's log names none), state (what that log says last
        of it; null: nothing), is_forgotten (the coordinator no longer has it), status, since_ms
        (when the coordinator began it; of a hanging one first_ms), last_ms, timeout_ms,
        first_offset, held_offsets and held_bytes (from it to the log's end: readers of committed
        records wait for these), is_first (it holds the last stable offset back), cleanup_policy (of
        the topic; null: not known), uncleaned_bytes (that compaction cannot reach; null: the topic
        is not compacted, or not known to be), command (that ends a hanging one),
        problem (why the status is not known; null: it is).
    Source: TransactionsCommand.FindHangingTransactionsCommand (4.3.1).
    """
    has_partition = F.array_contains("partitions", partition_name())
    is_of_it = has_partition & (F.col("coordinator_epoch") >= F.col("producer_epoch"))
    is_of_it &= ~F.col("is_forgotten")
    goes_on = F.coalesce(is_of_it & (F.col("state") == _ONGOING), F.lit(False))
    is_ending = F.coalesce(is_of_it & F.col("state").isin(*_PREPARED), F.lit(False))
    is_late = plus("coordinator_start_ms", "timeout_ms") < now_ms
    hangs = ~is_ending & ~goes_on
    begun_ms = F.coalesce("first_ms", "last_ms")
    is_newer = F.coalesce(F.col("seen_ms") >= begun_ms, F.lit(False))
    problem = F.coalesce(
        "log_doubt",
        "own_unread",
        F.concat(F.lit("not known: the last record of its id tells nothing: "), "state_problem"),
        F.when(hangs & F.col("state_partition").isNull(), F.col("all_unread")),
        F.when(hangs & ~is_newer, F.lit(_OLDER)),
    )
    is_known = F.col("problem").isNull()
    status = (
        F.when(~is_known, NOT_KNOWN)
        .when(is_ending, ENDING)
        .when(goes_on & is_late, OVERDUE)
        .when(goes_on, ONGOING)
        .otherwise(HANGING)
    )
    in_log = Window.partitionBy(*LOG_KEYS)
    is_compacted = F.col("cleanup_policy").contains("compact")
    since = F.when(goes_on | is_ending, F.col("coordinator_start_ms")).otherwise(F.col("first_ms"))

    def transform(opened: DataFrame) -> DataFrame:
        known = F.broadcast(coordinators)
        said = opened.join(known, ["cluster", "producer_id"], how="left")
        return (
            said.transform(with_reading(judged))
            .withColumn("problem", problem)
            .select(
                *("cluster", "topic", "partition", "broker_id", "producer_id", "producer_epoch"),
                *("transactional_id", "state"),
                F.coalesce("is_forgotten", F.lit(False)).alias("is_forgotten"),
                status.alias("status"),
                since.alias("since_ms"),
                *("last_ms", "timeout_ms", "first_offset"),
                minus("log_end_offset", "first_offset").alias("held_offsets"),
                "held_bytes",
                (F.col("first_offset") == F.min("first_offset").over(in_log)).alias("is_first"),
                "cleanup_policy",
                F.when(is_compacted, F.col("inactive_bytes")).alias("uncleaned_bytes"),
                F.when(hangs & is_known, _abort()).alias("command"),
                "problem",
            )
        )

    return transform


def _abort() -> Column:
    return F.concat(
        F.lit("kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic "),
        shell_word(F.col("topic")),
        F.lit(" --partition "),
        F.col("partition").cast("string"),
        F.lit(" --start-offset "),
        F.col("first_offset").cast("string"),
    )


def shell_word(name: Column) -> Column:
    """Quote a name for a shell, unless it is one that Kafka gives: folders may be named anyhow."""
    quoted = F.concat(F.lit("'"), F.replace(name, F.lit("'"), F.lit("'\\''")), F.lit("'"))
    return F.when(name.rlike("^[a-zA-Z0-9._-]+\\z"), name).otherwise(quoted)
