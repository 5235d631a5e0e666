"""Decide which segment a search reads, and from which byte on, from the tables alone."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.as_of import last_at_or_below, last_of_each_at_or_below
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import minus

KAFKA, TRUE, BOTH = "kafka", "true", "both"
_TRUE_IN_CUT_SEGMENT = "true, in the segment cut by the log start offset"
_KINDS = {"_kafka": KAFKA, "_true": TRUE, "_cut": _TRUE_IN_CUT_SEGMENT}
NO_TIMESTAMP_BOUND = -(2**63)
_FILE = (
    "base_offset",
    "path",
    "valid_bytes",
    "max_timestamp_ms",
    "offset_of_max_timestamp",
    "batch_count",
    "first_batch_timestamp_ms",
)


def _rising(segments: DataFrame) -> DataFrame:
    """Return the segments that can be the first to reach a timestamp, for each role.

    These are the segments that reach further than all segments before them. A row has the segment
    in the column of its role.
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
        .withColumns({"_reaches": reaches, "_before": F.max(reaches).over(before)})
        .where(F.col("_before").isNull() | (F.col("_reaches") > F.col("_before")))
        .select(
            *LOG_KEYS,
            minus(0, "_reaches").alias("_minus"),
            *(
                F.when(F.col("role") == role, F.struct(*_FILE)).alias(kind)
                for kind, role in _KINDS.items()
            ),
        )
    )


def choose_by_timestamp(segments: DataFrame) -> Transform:
    """Choose the segments that hold the first record at or after a timestamp.

    1. Kafka's is the first segment whose largest timestamp is at or after it. Where no record has
       a timestamp, the mtime of the file counts.
    2. The true one is found by record timestamps alone, among the segments that begin at or above
       the log start offset. The segment in which that offset lies is searched, too: the record in
       it that reaches the timestamp may lie below that offset.

    Needs: the key of a log, least_timestamp_ms (not negative), least_offset (the log start
        offset), any other columns; ``segments``: rows of ``segments`` with log_start_offset.
    Gives: a row for each segment chosen: these columns, base_offset, path, valid_bytes,
        max_timestamp_ms, offset_of_max_timestamp, batch_count, first_batch_timestamp_ms,
        role (kafka, true, both). Where Kafka finds no segment, its row has nulls.
    Source: UnifiedLog.fetchOffsetByTimestamp.
    """
    rising = _rising(segments)
    join = last_of_each_at_or_below(
        rising, keys=LOG_KEYS, at="_target", entry_at="_minus", kinds=tuple(_KINDS)
    )
    chosen = F.explode(F.array_compact(F.array(*_chosen_by_role())))

    def transform(questions: DataFrame) -> DataFrame:
        return (
            questions.withColumn("_target", minus(0, "least_timestamp_ms"))
            .transform(join)
            .withColumn("_chosen", chosen)
            .select(
                "*",
                *(F.col(f"_chosen.file.{name}").alias(name) for name in _FILE),
                F.col("_chosen.role").alias("role"),
            )
            .drop("_target", *_KINDS, "_chosen")
        )

    return transform


def _chosen_by_role() -> list[Column]:
    """Return the segments chosen for a question, each once, with its role; null: there is none."""
    base_offset = F.col("_kafka.base_offset")
    is_true = F.coalesce(base_offset == F.col("_true.base_offset"), F.lit(False))
    is_cut = F.coalesce(base_offset == F.col("_cut.base_offset"), F.lit(False))

    def segment(role: Column, kind: str) -> Column:
        return F.struct(role.alias("role"), F.col(kind).alias("file"))

    def another(kind: str, is_kafkas: Column) -> Column:
        return F.when(F.col(kind).isNotNull() & ~is_kafkas, segment(F.lit(TRUE), kind))

    kafkas = segment(F.when(is_true | is_cut, BOTH).otherwise(KAFKA), "_kafka")
    return [kafkas, another("_true", is_true), another("_cut", is_cut)]


def choose_by_max_timestamp(segments: DataFrame) -> Transform:
    """Choose the segment with the greatest timestamp; of equals the first.

    Where no record has a timestamp, there is no true answer. Kafka then answers the first record
    of the first segment, unless its message format is v0.

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
        return chosen.withColumn(
            "role", F.when(F.col("max_timestamp_ms") >= 0, BOTH).otherwise(KAFKA)
        )

    return transform


def choose_by_offset(segments: DataFrame) -> Transform:
    """Choose the segments that hold the first record at or after an offset.

    This is the first segment that ends above the offset. Compaction may have left no such record
    in it, so the next segment is chosen, too.

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
                last_at_or_below(
                    entries,
                    keys=LOG_KEYS,
                    at="_target",
                    entry_at="_minus_last",
                    given=("_files",),
                )
            )
            .withColumn("_file", F.explode("_files"))
            .where(F.col("_file").isNotNull())
            .select("*", "_file.*")
            .drop("_target", "_files", "_file")
            .withColumn("least_timestamp_ms", F.lit(NO_TIMESTAMP_BOUND).cast("long"))
            .withColumn("role", F.lit(TRUE))
        )

    return transform


def locate(time_index: DataFrame, offset_index: DataFrame) -> Transform:
    """Find the byte where the read of each chosen segment begins.

    1. Let T be the greatest indexed timestamp at or below the least timestamp asked for, o the
       offset of its entry, and o' the offset of the next entry. If T is the timestamp asked for,
       no batch before the one that holds o has it.
    2. Otherwise no batch up to the last offset entry below o' has a timestamp above T: with such a
       batch a time entry would have been written at that offset entry.
    3. What ends below the least offset is not searched.
    4. The read begins at the offset entry with the greatest offset at or below the one found by
       1 to 3; without such an entry, at the start of the file.

    Kafka always begins at o, which finds the same record and reads more.

    Needs: the key of a segment, batch_count (null: a first look, which has no entries),
        least_timestamp_ms, least_offset; ``time_index`` and ``offset_index``: rows of these tables.
    Gives: the same and start_position (long, bytes; null: no table tells it), start_offset (the
        last offset of the batch there; null: not known).
    Source: LogSegment.findOffsetByTimestamp, LogSegment.recover.
    """
    is_indexed = F.col("_indexed") == F.col("least_timestamp_ms")
    by_time = F.when(is_indexed, F.col("_offset")).otherwise(minus("_next_offset", 1))
    position = F.coalesce("_position", F.lit(0)).cast("long")
    start = F.greatest(F.coalesce(by_time, F.col("_offset")), F.col("least_offset"))

    def transform(chosen: DataFrame) -> DataFrame:
        segments = chosen.select(*SEGMENT_KEYS).distinct()
        times = _time_entries(time_index, segments)
        offsets = offset_index.join(segments, list(SEGMENT_KEYS), how="left_semi").select(
            *SEGMENT_KEYS,
            "offset",
            F.col("position").alias("_position"),
            F.col("offset").alias("start_offset"),
        )
        at_time = last_at_or_below(
            times,
            keys=SEGMENT_KEYS,
            at="least_timestamp_ms",
            entry_at="_timestamp",
            given=("_indexed", "_offset", "_next_offset"),
        )
        at_offset = last_at_or_below(
            offsets,
            keys=SEGMENT_KEYS,
            at="_from",
            entry_at="offset",
            given=("_position", "start_offset"),
        )
        return (
            chosen.transform(at_time)
            .withColumn("_from", start)
            .transform(at_offset)
            .withColumn("start_position", F.when(F.col("batch_count").isNotNull(), position))
            .drop("_indexed", "_offset", "_next_offset", "_from", "_position")
        )

    return transform


def _time_entries(time_index: DataFrame, segments: DataFrame) -> DataFrame:
    """Return the time entries of segments, each with the next one's offset.

    Each segment also gets an entry below all timestamps, at its base offset.
    """
    order = Window.partitionBy(*SEGMENT_KEYS).orderBy("_timestamp")
    least = F.lit(NO_TIMESTAMP_BOUND).cast("long")
    entries = time_index.join(segments, list(SEGMENT_KEYS), how="left_semi").select(
        *SEGMENT_KEYS, F.col("timestamp_ms").alias("_timestamp"), F.col("offset")
    )
    first = segments.withColumns({"_timestamp": least, "offset": F.col("base_offset")})
    return entries.unionByName(first).select(
        *SEGMENT_KEYS,
        "_timestamp",
        F.col("_timestamp").alias("_indexed"),
        F.col("offset").alias("_offset"),
        F.lead("offset").over(order).alias("_next_offset"),
    )
