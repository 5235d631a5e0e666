"""Take back answers that the tables do not bear out, and say why."""

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.replicas import cut_short, ends_below_start
from kafka_segments.engine.derived.tier_fronts import may_reach
from kafka_segments.engine.tables.findings import hides_rest
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.kafka.text.moments import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)

_UNREAD = (
    *("offset_overflow", "index_full", "too_large"),
    *("changed_while_read", "vanished_while_read", "unreadable", "not_permitted"),
)
_TRUE = ("true_timestamp_ms", "true_offset", "difference", "path", "position")
_NOT_KNOWN = "not known: "
_TIERED = "the topic is tiered, and what its tier has is not read; ask a broker"
ANSWERS = ("kafka_timestamp_ms", "kafka_offset", "kafka_leader_epoch", *_TRUE)


def say_unread(segments: DataFrame) -> Transform:
    """Take back the answers that records missing from the tables could change, and say why.

    1. An answer below the first such record stays: no missing record can come before it.
    2. Where recovery cuts a damaged segment, records can follow the damage: the true answer is not
       known. Kafka's stays, which is that of a broker that has recovered the log.

    Needs: ``answers.ANSWER``; ``segments``: rows of ``segments``.
    Gives: the same.
    """
    unread = F.broadcast(_first_unread(segments))

    def transform(answers: DataFrame) -> DataFrame:
        joined = answers.join(unread, list(LOG_KEYS), how="left")
        for place, taken in (("_unread", ANSWERS), ("_cut", _TRUE)):
            why = F.when(_is_taken_back(place), F.col(f"{place}.why"))
            kept = _taken_back(joined.columns, taken)
            joined = joined.withColumn("_why", why).select(*kept)
        return joined.drop("_unread", "_cut")

    return transform


def say_gaps(gaps: DataFrame, *, is_read_committed: bool) -> Transform:
    """Take back the answers that the segments missing from a log could change, and say why.

    1. In front of its first gap the answers stay, and so do those about where the log begins and
       ends.
    2. Kafka's stay, which are those of a broker that has only this. Where consumers read committed
       records they do not: a transaction may have ended, or begun, in what is missing.

    Needs: ``answers.ANSWER``; ``gaps``: rows of ``first_gaps``.
    Gives: the same.
    """
    named = (MAX_TIMESTAMP, LATEST) if is_read_committed else (MAX_TIMESTAMP,)
    is_by_time = (F.col("target_ms") >= 0) & _is_behind("gap", F.col("true_offset"))
    is_named = F.col("target_ms").isin(*named) & F.col("gap").isNotNull()
    is_taken = F.col("problem").isNull() & (is_by_time | is_named)
    why = F.when(is_taken, F.concat(F.lit("not known: "), "gap.why"))
    taken = ANSWERS if is_read_committed else _TRUE

    def transform(answers: DataFrame) -> DataFrame:
        joined = answers.join(F.broadcast(gaps), list(LOG_KEYS), how="left")
        return joined.withColumn("_why", why).select(*_taken_back(answers.columns, taken))

    return transform


def say_in_tier(fronts: DataFrame) -> Transform:
    """Take back the answers that what lies in tiered storage alone could change, and say why.

    1. By time a broker looks there first. An answer stays where all records in front are known to
       be earlier.
    2. MAX_TIMESTAMP it answers from its disk: that stays, and the true answer goes.
    3. EARLIEST stays where it is noted; what is asked of the tier itself is not known.

    Needs: ``answers.ANSWER``; ``fronts``: rows of ``tier_fronts``.
    Gives: the same.
    Source: UnifiedLog.fetchOffsetByTimestamp.
    """
    target = F.col("target_ms")
    is_of_tier = target.isin(LATEST_TIERED, EARLIEST_PENDING_UPLOAD)
    is_start = (target == EARLIEST) & F.col("front.start").isNull()
    is_by_time = (target >= 0) & may_reach(target)
    has_front = F.col("front").isNotNull()
    is_unasked = F.col("_is_tiered") & F.col("problem").isNull()
    whys = {
        ANSWERS: F.when(has_front & (is_by_time | is_start), F.col("front.why")).when(
            is_of_tier, F.lit(_TIERED)
        ),
        _TRUE: F.when(has_front & (target == MAX_TIMESTAMP), F.col("front.why")),
    }
    known = F.broadcast(fronts.withColumn("_is_tiered", F.lit(True)))

    def transform(answers: DataFrame) -> DataFrame:
        told = answers.join(known, list(LOG_KEYS), how="left")
        for taken, why in whys.items():
            told = told.withColumn("_why", F.when(is_unasked, F.concat(F.lit(_NOT_KNOWN), why)))
            told = told.select(*_taken_back(told.columns, taken))
        return told.select(*answers.columns)

    return transform


def say_cut_short(logs: DataFrame) -> Transform:
    """Take back the true answers that the missing end of a log could change, and say why.

    Kafka's stay, which are those of a broker that has only this.

    Needs: ``answers.ANSWER``; ``logs``: the key of a log, log_start_offset, log_end_offset,
        high_watermark.
    Gives: the same.
    """
    ends = F.broadcast(_cut_short(logs))

    why = F.when(_is_taken_back("_short"), F.col("_short.why"))
    told = {name: F.when(why.isNull(), F.col(name)) for name in _TRUE}
    told["problem"] = F.coalesce(why, "problem")

    def transform(answers: DataFrame) -> DataFrame:
        return answers.join(ends, list(LOG_KEYS), how="left").withColumns(told).drop("_short")

    return transform


def _cut_short(logs: DataFrame) -> DataFrame:
    """Return of each log that is cut short where it ends, and why its end is not known."""
    why = F.coalesce(cut_short(F.col("high_watermark")), ends_below_start())
    place = F.struct(F.col("log_end_offset").alias("offset"), why.alias("why")).alias("_short")
    return logs.select(*LOG_KEYS, place).where(F.col("_short.why").isNotNull())


def with_unread(
    segments: DataFrame, logs: DataFrame, gaps: DataFrame | None, *, found: Column
) -> Transform:
    """Add ``unread``: why the record found first in a log may not be its first; null: it is that.

    Needs: the key of a log, and what ``found`` is made of (the record's offset; null: there is
        none); ``segments``: rows of ``segments``; ``logs``: log_start_offset,
        log_end_offset, high_watermark;
        ``gaps``: rows of ``first_gaps``, None: there are none.
    Gives: the same, unread.
    """
    places = ("_unread", "_cut", "_short", *(() if gaps is None else ("gap",)))
    unread, ends = F.broadcast(_first_unread(segments)), F.broadcast(_cut_short(logs))
    whys = [F.when(_is_behind(place, found), F.col(f"{place}.why")) for place in places]

    def transform(rows: DataFrame) -> DataFrame:
        joined = rows.join(unread, list(LOG_KEYS), how="left").join(
            ends, list(LOG_KEYS), how="left"
        )
        if gaps is not None:
            joined = joined.join(F.broadcast(gaps), list(LOG_KEYS), how="left")
        return joined.withColumn("unread", F.coalesce(*whys)).drop(*places)

    return transform


def say_doubts(doubts: DataFrame, taken: Sequence[str] = ANSWERS) -> Transform:
    """Take back the answers of logs that do not answer for their partition.

    Needs: ``answers.ANSWER``, or the key of a log, ``taken`` and problem; ``doubts``: the key of a
        log, doubt (why; null: it answers).
    Gives: the same.
    """
    known = F.broadcast(doubts.select(*LOG_KEYS, F.col("doubt").alias("_why")))

    def transform(answers: DataFrame) -> DataFrame:
        joined = answers.join(known, list(LOG_KEYS), how="left")
        return joined.select(*_taken_back(answers.columns, taken))

    return transform


def _taken_back(names: Sequence[str], taken: Sequence[str] = ANSWERS) -> Iterator[Column | str]:
    """Yield the columns of answers; where ``_why`` says why, those of ``taken`` are taken back."""
    for name in names:
        if name == "problem":
            yield F.coalesce("_why", "problem").alias(name)
        elif name in taken:
            yield F.when(F.col("_why").isNull(), F.col(name)).alias(name)
        else:
            yield name


def _first_unread(segments: DataFrame) -> DataFrame:
    """Return of each log the first offset that the tables may lack, and why.

    ``_unread`` is where they end before recovery does, ``_cut`` where recovery cuts; null: nowhere.
    """
    lacks = F.col("damage.kind").isin(*_UNREAD)
    is_cut = ~lacks & hides_rest()
    offset = F.coalesce("next_offset", "base_offset").alias("offset")
    places = {
        "_unread": (lacks, F.struct(offset, _why_unread().alias("why"))),
        "_cut": (is_cut, F.struct(offset, _why_cut().alias("why"))),
    }
    firsts = (F.min(F.when(holds, place)).alias(name) for name, (holds, place) in places.items())
    return segments.where(F.col("damage").isNotNull()).groupBy(*LOG_KEYS).agg(*firsts)


def _why_unread() -> Column:
    return F.concat_ws(
        "",
        F.col("path"),
        F.lit(": the tables have "),
        F.coalesce(
            F.concat(F.lit("its first "), "valid_bytes", F.lit(" bytes alone")),
            F.lit("nothing of it"),
        ),
        F.lit(": "),
        F.col("damage.message"),
    )


def _why_cut() -> Column:
    return F.concat_ws(
        "",
        F.lit("not known: "),
        F.col("path"),
        F.lit(" is damaged at byte "),
        F.coalesce("valid_bytes", F.lit(0)),
        F.lit(", and records may follow: "),
        F.col("damage.message"),
    )


def _is_taken_back(place: str) -> Column:
    """Tell whether an answer may lie at a place or behind it; one with a problem is none."""
    is_start = F.col("target_ms").isin(EARLIEST, EARLIEST_LOCAL)
    is_named = (F.col("target_ms") < 0) & ~is_start
    is_known = F.col(place).isNull() | F.col("problem").isNotNull()
    return ~is_known & (is_named | (~is_start & _is_behind(place, F.col("true_offset"))))


def _is_behind(place: str, found: Column) -> Column:
    """Tell whether an offset lies at a place or behind it; null lies behind all."""
    is_behind = found.isNull() | (found >= F.col(f"{place}.offset"))
    return F.col(place).isNotNull() & is_behind
