"""Choose the segment that a search goes to, and the byte where it begins, from tables alone."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.tables.as_of import last_at_or_below
from kafka_segments.tables.bounded import minus
from kafka_segments.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform

KAFKA, TRUE = "kafka", "true"
_TRUE_IN_CUT_SEGMENT = "true, in the segment cut by the log start offset"
NO_TIMESTAMP_BOUND = -(2**63)
_FILE = (
    "base_offset",
    "path",
    "valid_bytes",
    "max_timestamp_ms",
    "offset_of_max_timestamp",
)


def describe_logs(logs: DataFrame) -> Transform:
    """Tell of each log where it starts and ends, and its leader epochs.

    The log start offset is the checkpoint's, but not below the first segment; the end is the
    last segment's next offset. Epochs are those of the file, else those that the batches show.

    Needs: rows of ``segments``; ``logs``: rows of ``logs``.
    Gives: the key of a log, log_start_offset, log_end_offset (long), high_watermark,
        leader_epochs (array of epoch, start_offset).
    """

    def transform(segments: DataFrame) -> DataFrame:
        epochs = F.array_sort(F.flatten(F.collect_list("leader_epochs")))
        found = segments.groupBy(*LOG_KEYS).agg(
            F.min("base_offset").alias("_first"),
            F.max(F.coalesce("next_offset", "base_offset")).alias("log_end_offset"),
            epochs.alias("_epochs"),
        )
        known = logs.select(*LOG_KEYS, "log_start_offset", "high_watermark", "leader_epochs")
        return found.join(known, list(LOG_KEYS), how="left").select(
            *LOG_KEYS,
            F.greatest("_first", "log_start_offset").alias("log_start_offset"),
            "log_end_offset",
            "high_watermark",
            F.coalesce("leader_epochs", "_epochs").alias("leader_epochs"),
        )

    return transform


def _rising(segments: DataFrame) -> DataFrame:
    """Give the segments that can be the first to reach a timestamp, for each role.

    Only one that goes beyond all before it can be; of these timestamps rise.
    """
    start = F.col("log_start_offset")
    is_whole = (F.col("max_timestamp_ms") >= 0) & (F.col("base_offset") >= start)
    is_cut = (
        (F.col("max_timestamp_ms") >= 0)
        & (F.col("base_offset") < start)
        & (F.col("next_offset") > start)
    )
    roles = F.array(F.lit(KAFKA), F.when(is_whole, TRUE), F.when(is_cut, _TRUE_IN_CUT_SEGMENT))
    before = (
        Window.partitionBy(*LOG_KEYS, "role")
        .orderBy("base_offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    reaches = F.when(F.col("role") == KAFKA, F.col("largest_timestamp_ms")).otherwise(
        F.col("max_timestamp_ms")
    )
    return (
        segments.withColumn("role", F.explode(F.array_compact(roles)))
        .withColumn("_reaches", reaches)
        .withColumn("_before", F.max("_reaches").over(before))
        .where(F.col("_before").isNull() | (F.col("_reaches") > F.col("_before")))
        .select(*LOG_KEYS, "role", minus(0, "_reaches").alias("_minus"), *_FILE)
    )


def choose_by_timestamp(segments: DataFrame) -> Transform:
    """Choose the segments that hold the first record at or after a timestamp.

    1. Kafka's: the first whose largest timestamp, the file's mtime where no record has one,
       is at or after it.
    2. The true one: the same by record timestamps alone, among segments above the log start
       offset; the segment that the log start offset lies in comes besides, since what reaches the
       timestamp in it may lie below that offset.

    Needs: the key of a log, least_timestamp_ms (not negative), least_offset (the log start
        offset), any other columns; ``segments``: rows of ``segments`` with log_start_offset.
    Gives: a row a segment chosen: these columns, base_offset, path, valid_bytes,
        max_timestamp_ms, offset_of_max_timestamp, role (kafka, true). Where Kafka finds no
        segment, its row has nulls.
    Source: UnifiedLog.fetchOffsetByTimestamp.
    """
    rising = _rising(segments)
    is_kafka = F.col("role") == KAFKA

    def transform(questions: DataFrame) -> DataFrame:
        return (
            questions.withColumn("_target", minus(0, "least_timestamp_ms"))
            .withColumn(
                "role", F.explode(F.array(*map(F.lit, (KAFKA, TRUE, _TRUE_IN_CUT_SEGMENT))))
            )
            .transform(
                last_at_or_below(rising, keys=(*LOG_KEYS, "role"), at="_target", entry_at="_minus")
            )
            .where(F.col("base_offset").isNotNull() | is_kafka)
            .drop("_target")
            .withColumn("role", F.when(is_kafka, KAFKA).otherwise(TRUE))
        )

    return transform


def choose_by_max_timestamp(segments: DataFrame) -> Transform:
    """Choose the segment with the greatest timestamp, the first of equals.

    Where no record has a timestamp, Kafka answers the first segment's first record, unless that
    is of a message v0; in truth there is none.

    Needs: the key of a log, any other columns; ``segments``: rows of ``segments``.
    Gives: as ``choose_by_timestamp``, the greatest timestamp as least_timestamp_ms.
    Source: UnifiedLog.fetchOffsetByTimestamp, MAX_TIMESTAMP; RecordBatch.offsetOfMaxTimestamp.
    """
    order = Window.partitionBy(*LOG_KEYS).orderBy(F.desc("max_timestamp_ms"), "base_offset")
    is_v0 = (F.col("max_timestamp_ms") < 0) & F.array_contains("magics", F.lit(0))
    first = (
        segments.withColumn("_rank", F.row_number().over(order))
        .where((F.col("_rank") == 1) & ~F.coalesce(is_v0, F.lit(False)))
        .select(*LOG_KEYS, *_FILE, F.col("base_offset").alias("least_offset"))
        .withColumn("least_timestamp_ms", F.col("max_timestamp_ms"))
    )

    def transform(questions: DataFrame) -> DataFrame:
        chosen = questions.drop("least_timestamp_ms", "least_offset").join(
            first, list(LOG_KEYS), how="left"
        )
        return chosen.withColumn("role", F.lit(KAFKA)).unionByName(
            chosen.where(F.col("max_timestamp_ms") >= 0).withColumn("role", F.lit(TRUE))
        )

    return transform


def choose_by_offset(segments: DataFrame) -> Transform:
    """Choose the segments that hold the first record at or after an offset.

    That is the first segment that ends above it; where compaction left no record in it, the next.

    Needs: the key of a log, question, least_offset (long); ``segments``: rows of ``segments``.
    Gives: as ``choose_by_timestamp``, with least_timestamp_ms open and role true.
    Source: LocalLog.read.
    """
    order = Window.partitionBy(*LOG_KEYS).orderBy("base_offset")
    holding = segments.where(F.col("next_offset") > F.col("base_offset"))
    following = F.lead(F.struct(*_FILE)).over(order)
    entries = holding.withColumn("_files", F.array(F.struct(*_FILE), following)).select(
        *LOG_KEYS, "_files", minus(1, "next_offset").alias("_minus_last")
    )

    def transform(questions: DataFrame) -> DataFrame:
        return (
            questions.drop("least_timestamp_ms")
            .withColumn("_target", minus(0, "least_offset"))
            .transform(
                last_at_or_below(entries, keys=LOG_KEYS, at="_target", entry_at="_minus_last")
            )
            .withColumn("_file", F.explode("_files"))
            .where(F.col("_file").isNotNull())
            .select(*questions.drop("least_timestamp_ms").columns, "_file.*")
            .withColumn("least_timestamp_ms", F.lit(NO_TIMESTAMP_BOUND).cast("long"))
            .withColumn("role", F.lit(TRUE))
        )

    return transform


def locate(time_index: DataFrame, offset_index: DataFrame) -> Transform:
    """Find the byte where the read of each chosen segment begins.

    1. Let T be the greatest indexed timestamp at or below the one searched, o its offset, and o'
       the offset of the next entry. Where T is the timestamp itself, nothing before the batch
       of o has it.
    2. Else all batches up to the last offset entry below o' have timestamps of T at most: had
       one more, that offset entry would have come with a time entry.
    3. Nothing that ends below the least offset is searched.
    4. The read begins where the offset index says, at the entry with the greatest offset not
       above; at the start of the file where there is none.

    Kafka begins at o in any case, which finds the same and reads more.

    Needs: the key of a segment, least_timestamp_ms, least_offset; the tables' rows.
    Gives: the same and start_position (long, bytes).
    Source: LogSegment.findOffsetByTimestamp, LogSegment.recover.
    """

    def transform(chosen: DataFrame) -> DataFrame:
        segments = chosen.select(*SEGMENT_KEYS).distinct()
        order = Window.partitionBy(*SEGMENT_KEYS).orderBy("_timestamp")
        times = (
            time_index.join(segments, list(SEGMENT_KEYS), how="left_semi")
            .select(*SEGMENT_KEYS, F.col("timestamp_ms").alias("_timestamp"), F.col("offset"))
            .unionByName(
                segments.withColumn(
                    "_timestamp", F.lit(NO_TIMESTAMP_BOUND).cast("long")
                ).withColumn("offset", F.col("base_offset"))
            )
            .select(
                *SEGMENT_KEYS,
                "_timestamp",
                F.col("_timestamp").alias("_indexed"),
                F.col("offset").alias("_offset"),
                F.lead("offset").over(order).alias("_next_offset"),
            )
        )
        offsets = offset_index.join(segments, list(SEGMENT_KEYS), how="left_semi").select(
            *SEGMENT_KEYS, "offset", F.col("position").alias("_position")
        )
        is_indexed = F.col("_indexed") == F.col("least_timestamp_ms")
        by_time = F.when(is_indexed, F.col("_offset")).otherwise(minus("_next_offset", 1))
        return (
            chosen.transform(
                last_at_or_below(
                    times, keys=SEGMENT_KEYS, at="least_timestamp_ms", entry_at="_timestamp"
                )
            )
            .withColumn(
                "_from", F.greatest(F.coalesce(by_time, F.col("_offset")), F.col("least_offset"))
            )
            .transform(last_at_or_below(offsets, keys=SEGMENT_KEYS, at="_from", entry_at="offset"))
            .withColumn("start_position", F.coalesce("_position", F.lit(0)).cast("long"))
            .drop("_indexed", "_offset", "_next_offset", "_from", "_position")
        )

    return transform
