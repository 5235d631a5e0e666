"""Decisions over files of internal topics: which changed since they were read, and how."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.file_sums import FILE_KEYS, sums_of_file
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform

SAME, PLACED, GROWN, NEW, OTHER, GONE = "same", "placed", "grown", "new", "other", "gone"
READ_STATES = (GROWN, NEW, OTHER)
"""States of files that are read: one that has grown from where it ended."""
_OF_FILE = ("path", "is_snapshot", "is_active", "base_offset", "size_bytes", "mtime_ns")
_COUNTS = ("rows", "records", "tombstones", "unknown", "unreadable")
_ENDS = ("from_offset", "to_offset", "from_ms", "to_ms")
_KEPT = (*_COUNTS, "is_torn", *_ENDS, "read_bytes", "read_rows", "crc32c")


def compared_with(known: DataFrame) -> Transform:
    """Tell how the files on the disk differ from what the tables have of them.

    1. A file whose base offset, size and modification time are as they were is the *same*. It is
       *placed* otherwise where it alone became, or no longer is, the last segment of its log.
    2. One that is not shorter than what was read of it may have *grown*: ``judged_by`` decides.
    3. Any other is *other* than it was: what the cleaner rewrote, what was truncated.
    4. The tables have nothing of a *new* file, and the disk nothing of one that is *gone*.

    Needs: rows of files; ``known``: rows of ``known_files`` of the logs that count.
    Gives: the columns of a file, state, known_rows, start_bytes, start_row, start_crc32c (what was
        read of it, and its digest; null: it cannot be gone on from there).
    """
    before = known.select(
        *FILE_KEYS,
        *(F.col(name).alias(f"_{name}") for name in ("is_active", *_OF_FILE[3:])),
        F.col("rows").alias("known_rows"),
        F.col("read_bytes").alias("start_bytes"),
        F.col("read_rows").alias("start_row"),
        F.col("crc32c").alias("start_crc32c"),
    )
    is_same = F.col("base_offset") == F.col("_base_offset")
    is_same &= F.col("size_bytes") == F.col("_size_bytes")
    is_same &= F.col("mtime_ns").eqNullSafe(F.col("_mtime_ns"))
    state = (
        F.when(F.col("path").isNull(), GONE)
        .when(F.col("known_rows").isNull(), NEW)
        .when(is_same & (F.col("is_active") == F.col("_is_active")), SAME)
        .when(is_same, PLACED)
        .when(F.col("size_bytes") >= F.col("start_bytes"), GROWN)
        .otherwise(OTHER)
    )

    def transform(files: DataFrame) -> DataFrame:
        now = files.where("size_bytes > 0").select(*FILE_KEYS, *_OF_FILE)
        return now.join(before, list(FILE_KEYS), how="full").select(
            *FILE_KEYS,
            *_OF_FILE,
            state.alias("state"),
            "known_rows",
            *("start_bytes", "start_row", "start_crc32c"),
        )

    return transform


def is_looked_at() -> Column:
    """Tell whether the whole batches of a file are to be digested.

    They are where it may have grown since, or may still grow.

    Needs: the columns of ``compared_with``.
    """
    may_grow = F.col("is_active") & F.col("state").isin(NEW, OTHER)
    return (F.col("state") == GROWN) | may_grow


def judged_by(looks: DataFrame) -> Transform:
    """Decide which files have grown, by what their first bytes are now.

    Needs: rows of ``compared_with``; ``looks``: rows of ``look_at``.
    Gives: the same without start_crc32c; start_bytes and start_row (0 where all of a file is read);
        read_bytes, crc32c (up to where an active segment is whole batches; null: not known).
    """
    seen = looks.select(
        *FILE_KEYS, "has_start", F.col("end").alias("_end"), F.col("crc32c").alias("_crc32c")
    )
    is_other = (F.col("state") == GROWN) & ~F.coalesce("has_start", F.lit(False))
    state = F.when(is_other, OTHER).otherwise(F.col("state"))
    goes_on = F.col("state") == GROWN

    def transform(compared: DataFrame) -> DataFrame:
        return (
            compared.join(seen, list(FILE_KEYS), how="left")
            .withColumn("state", state)
            .select(
                *FILE_KEYS,
                *_OF_FILE,
                "state",
                "known_rows",
                *(
                    F.when(goes_on, F.col(name)).otherwise(F.lit(0).cast("long")).alias(name)
                    for name in ("start_bytes", "start_row")
                ),
                F.when(F.col("is_active"), F.col("_end")).alias("read_bytes"),
                F.when(F.col("is_active"), F.col("_crc32c")).alias("crc32c"),
            )
        )

    return transform


def changed_logs(judged: DataFrame) -> DataFrame:
    """Return the logs with files that changed.

    Needs: rows of ``judged_by``.
    Gives: the log's keys, keeps_rows (whether any of its rows stay), replaced, new, placed (arrays
        of files in these states; replaced: other or gone), grown (array of file, start_row,
        has_end: whether its last row goes).
    """

    def named(*states: str) -> Column:
        return F.sort_array(F.collect_list(F.when(F.col("state").isin(*states), F.col("file"))))

    has_end = F.col("known_rows") > F.col("start_row")
    one = F.struct("file", "start_row", has_end.alias("has_end"))
    grown = F.sort_array(F.collect_list(F.when(F.col("state") == GROWN, one)))
    by_log = judged.groupBy(*LOG_KEYS).agg(
        F.bool_or(F.col("state").isin(SAME, PLACED, GROWN)).alias("keeps_rows"),
        F.bool_and(F.col("state") == SAME).alias("_is_same"),
        named(OTHER, GONE).alias("replaced"),
        named(NEW).alias("new"),
        named(PLACED).alias("placed"),
        grown.alias("grown"),
    )
    return by_log.where("NOT _is_same").drop("_is_same")


def rows_that_stay(judged: DataFrame) -> Transform:
    """Keep the rows of files that the next write leaves as they are.

    Needs: rows of ``internal_records``; ``judged``: rows of ``judged_by``.
    Gives: the same columns.
    """
    of_file = judged.select(*FILE_KEYS, "state", "start_row")
    stays = F.col("state").isNull() | F.col("state").isin(SAME, PLACED)
    stays |= (F.col("state") == GROWN) & (F.col("row") < F.col("start_row"))

    def transform(records: DataFrame) -> DataFrame:
        joined = records.join(of_file, list(FILE_KEYS), how="left")
        return joined.where(stays).select(*records.columns)

    return transform


def files_now(judged: DataFrame, known: DataFrame) -> DataFrame:
    """Return the files that the tables have rows of once they are written.

    Needs: rows of ``judged_by``; ``known``: rows of ``known_files``.
    Gives: a file's key, is_active, size_bytes.
    """
    names = (*FILE_KEYS, "is_active", "size_bytes")
    others = known.join(judged.select(*FILE_KEYS), list(FILE_KEYS), how="left_anti")
    return judged.where(F.col("state") != GONE).select(*names).unionByName(others.select(*names))


def files_as_read(judged: DataFrame, known: DataFrame) -> Transform:
    """Say what was read of the files that changed, and are not gone.

    Needs: rows of ``internal_records`` of the files that were read, from start_row on, others too;
        ``judged``: rows of ``judged_by``; ``known``: rows of ``known_files``.
    Gives: the columns of ``internal_files`` without records_version.
    """
    changed = judged.where(~F.col("state").isin(SAME, GONE))
    read = changed.where(F.col("state").isin(*READ_STATES))
    starts = read.select(*FILE_KEYS, "start_row", "read_bytes")
    before = known.select(*FILE_KEYS, *(F.col(name).alias(f"_{name}") for name in _KEPT))
    has_offset = F.col("offset").isNotNull()
    is_within = F.col("batch_position") < F.col("read_bytes")
    is_damage = ~has_offset & F.col("problem").isNotNull() & is_within
    is_empty = ~has_offset & F.col("problem").isNull()
    own = {
        **sums_of_file(),
        "end_rows": F.count_if(~is_within | is_empty),
        "is_unsure": F.bool_or(is_damage | (has_offset & ~is_within)),
    }

    def transform(records: DataFrame) -> DataFrame:
        counted = (
            records.join(starts, list(FILE_KEYS), how="inner")
            .where("row >= start_row")
            .groupBy(*FILE_KEYS)
            .agg(*(value.alias(f"_new_{name}") for name, value in own.items()))
        )
        joined = changed.join(before, list(FILE_KEYS), how="left").join(
            counted, list(FILE_KEYS), how="left"
        )
        return joined.select(*FILE_KEYS, *_OF_FILE[1:], *_told())

    return transform


def _told() -> list[Column]:
    """Return the columns of ``internal_files`` that the rows of a file tell."""
    is_placed, is_grown = F.col("state") == PLACED, F.col("state") == GROWN
    ends_gone = F.when(is_grown, F.col("_rows") - F.col("start_row")).otherwise(0)
    stays = {
        "rows": F.col("_rows") - ends_gone,
        **{name: F.col(f"_{name}") for name in _COUNTS[1:-1]},
        "unreadable": F.greatest(F.col("_unreadable") - ends_gone, F.lit(0)),
    }
    goes_on = is_placed | is_grown
    counts = {
        name: F.when(goes_on, value).otherwise(0) + F.coalesce(f"_new_{name}", F.lit(0))
        for name, value in stays.items()
    }
    torn = F.when(is_placed, F.col("_is_torn")).otherwise(F.col("_new_is_torn"))
    ends = {
        name: (F.least if name.startswith("from") else F.greatest)(
            F.when(goes_on, F.col(f"_{name}")), F.col(f"_new_{name}")
        )
        for name in _ENDS
    }
    is_sure = ~F.coalesce("_new_is_unsure", F.lit(False))
    whole_rows = counts["rows"] - F.coalesce("_new_end_rows", F.lit(0))
    positions = {
        name: F.when(is_placed, F.col(f"_{name}")).when(
            is_sure & F.col("read_bytes").isNotNull(), value
        )
        for name, value in (
            ("read_bytes", F.col("read_bytes")),
            ("read_rows", whole_rows),
            ("crc32c", F.col("crc32c")),
        )
    }
    columns = {**counts, "is_torn": F.coalesce(torn, F.lit(False)), **ends, **positions}
    return [value.alias(name) for name, value in columns.items()]
