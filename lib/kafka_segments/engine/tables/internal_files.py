"""What ``internal_files`` says of the files whose rows ``internal_records`` has.

A run writes ``internal_records`` first, and notes in its rows of ``internal_files`` which version
of it has theirs. Where that is another by now, a run ended in between, or somebody else changed the
records: then the rows of each file are counted, and nothing is said of a file with another number.
"""

from contextlib import ExitStack

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import INTERNAL_FILES, INTERNAL_RECORDS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.errors import UsageError
from kafka_segments.kafka.messages.records import UNKNOWN

FILE_KEYS = (*LOG_KEYS, "file")
# What ``describe_end`` of ``wire.ends`` says of an incomplete batch at the end of a file.
TORN = "bytes left, too few for a batch|bytes, [0-9]+ are left in the file"
_IN_EACH_ROW = ("is_active", "size_bytes", "mtime_ns")
"""Columns that earlier releases kept in each row of ``internal_records``."""
_NOT_NOTED = ("read_bytes", "read_rows", "crc32c")


def is_torn() -> Column:
    """Tell whether a row of ``internal_records`` is a last batch that is not there to its end."""
    return F.col("offset").isNull() & F.coalesce(F.col("problem").rlike(TORN), F.lit(False))


def sums_of_file() -> dict[str, Column]:
    """Return what is counted of the rows of a file, by the names of ``internal_files``."""
    has_record = F.col("kind").isNotNull() & ~F.col("is_snapshot")
    offset = F.when(has_record, F.col("offset"))
    timestamp = F.when(has_record & (F.col("timestamp_ms") >= 0), F.col("timestamp_ms"))
    return {
        "rows": F.count("*"),
        "records": F.count_if(has_record),
        "tombstones": F.count_if(has_record & F.col("is_tombstone")),
        "unknown": F.count_if(F.col("kind") == UNKNOWN),
        "unreadable": F.count("problem"),
        "is_torn": F.coalesce(F.bool_or(is_torn()), F.lit(False)),
        "from_offset": F.min(offset),
        "to_offset": F.max(offset),
        "from_ms": F.min(timestamp),
        "to_ms": F.max(timestamp),
    }


def known_files(tables: Warehouse, caches: ExitStack | None = None) -> DataFrame:
    """Return what is known of the files that ``internal_records`` has rows of.

    ``size_bytes`` is null where nothing is but how many rows there are. Tables of an earlier
    release say it in each row. The files are cached until ``caches`` closes; None: until the
    session ends.

    Gives: the columns of ``internal_files``.
    """
    version = tables.version(INTERNAL_RECORDS)
    if not version:  # no row was ever written
        return local_rows(tables.spark, [], INTERNAL_FILES.schema)
    if not tables.version(INTERNAL_FILES):
        return computed_once(_by_rows(tables), caches)
    files = tables.read(INTERNAL_FILES)
    noted = files.agg(F.max("records_version")).collect()[0][0]
    if noted == version:
        return computed_once(files, caches)
    return computed_once(_counted(files, tables.read(INTERNAL_RECORDS)), caches)


def file_facts(tables: Warehouse, caches: ExitStack | None = None) -> DataFrame:
    """Return what is known of the files that ``internal_records`` has rows of, of all of them.

    Gives: the columns of ``internal_files``.

    Raises:
        UsageError: of some it is not known, as the last run ended before it said so.
    """
    files = known_files(tables, caches)
    if not files.where("rows > 0 AND size_bytes IS NULL").isEmpty():
        raise UsageError(
            f"{tables.root} has records of internal topics of which internal_files does not say how"
            " far their file was read, as after a run that was ended: run `kafka-segments"
            " internals --source` of the same log directories once more"
        )
    return files


def with_file_facts(files: DataFrame) -> Transform:
    """Add what is known of the file of each row: is_active, size_bytes.

    Needs: rows of ``internal_records``; ``files``: the columns of a file's key, is_active,
        size_bytes.
    """
    facts = files.select(*FILE_KEYS, "is_active", "size_bytes")
    return lambda records: records.join(facts, list(FILE_KEYS), how="left")


def _by_rows(tables: Warehouse) -> DataFrame:
    """Return of each file what its rows of ``internal_records`` say, where all say it."""
    names = (*INTERNAL_RECORDS.schema.fieldNames(), *_IN_EACH_ROW)
    records = tables.read(INTERNAL_RECORDS, names)
    there = records.columns
    said = {name: F.first(name) for name in ("is_snapshot", "base_offset")}
    for name in _IN_EACH_ROW:
        is_said = F.count("size_bytes") == F.count("*") if name in there else F.lit(False)
        value = F.first(name) if name in there else F.lit(None).cast(_kind(name))
        said[name] = F.when(is_said, value)
    sums = said | sums_of_file()
    nothing = {name: F.lit(None).cast(_kind(name)) for name in _NOT_NOTED}
    return (
        records.groupBy(*FILE_KEYS)
        .agg(*(value.alias(name) for name, value in sums.items()))
        .withColumns(nothing | {"records_version": F.lit(0).cast("long")})
        .select(*INTERNAL_FILES.schema.fieldNames())
    )


def _counted(files: DataFrame, records: DataFrame) -> DataFrame:
    """Forget what is said of files with another number of rows, which may be 0."""
    there = records.groupBy(*FILE_KEYS).agg(F.count("*").alias("_rows"))
    names = [name for name in INTERNAL_FILES.schema.fieldNames() if name not in FILE_KEYS]
    is_so = F.col("rows") == F.col("_rows")
    told = {name: F.when(is_so, F.col(name)) for name in names if name != "rows"}
    return (
        there.join(files, list(FILE_KEYS), how="full")
        .withColumns(told | {"rows": F.coalesce("_rows", F.lit(0))})
        .select(*INTERNAL_FILES.schema.fieldNames())
    )


def _kind(name: str) -> str:
    return "boolean" if name == "is_active" else "long"
