"""What ``internal_files`` says of the files whose rows ``internal_records`` has.

A run writes ``internal_records`` first, and notes in its rows of ``internal_files`` which version
of it has theirs. Where that is another by now, a run ended in between, or somebody else changed the
records: then the rows of each file are counted, and nothing is said of a file with another number.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.file_sums import FILE_KEYS, sums_of_file
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import INTERNAL_FILES, INTERNAL_RECORDS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.table_columns import columns_of
from kafka_segments.errors import UsageError

_IN_EACH_ROW = ("is_active", "size_bytes", "mtime_ns")
"""Columns that earlier releases kept in each row of ``internal_records``."""
_NOT_NOTED = ("read_bytes", "read_rows", "crc32c")


def known_files(tables: Warehouse) -> DataFrame:
    """Return what is known of the files that ``internal_records`` has rows of.

    ``size_bytes`` is null where nothing is but how many rows there are. Tables of an earlier
    release say it in each row.

    Gives: the columns of ``internal_files``.
    """
    version = tables.version(INTERNAL_RECORDS)
    if not version:  # no row was ever written
        return local_rows(tables.spark, [], INTERNAL_FILES.schema)
    if not tables.version(INTERNAL_FILES):
        return _by_rows(tables)
    files = tables.read(INTERNAL_FILES)
    noted = files.agg(F.max("records_version")).collect()[0][0]
    return files if noted == version else _counted(files, tables.read(INTERNAL_RECORDS))


def file_facts(tables: Warehouse) -> DataFrame:
    """Return what is known of the files that ``internal_records`` has rows of, of all of them.

    Gives: the columns of ``internal_files``.

    Raises:
        UsageError: of some it is not known, as the last run ended before it said so.
    """
    files = known_files(tables)
    if not files.where("rows > 0 AND size_bytes IS NULL").isEmpty():
        raise UsageError(
            f"{tables.root} has records of internal topics of which internal_files does not say how"
            " far their file was read, as after a run that was ended: run `kafka-segments"
            " internals --source` of the same log directories once more"
        )
    return files


def newest_records_ms(tables: Warehouse, topic: str, cluster: str | None) -> list[int]:
    """Return of each cluster the latest timestamp of what was read of an internal topic, in ms.

    ``cluster``: of this one alone. One whose records have no timestamp is left out.
    """
    of_topic = known_files(tables).where(F.col("topic") == topic)
    asked = of_topic if cluster is None else of_topic.where(F.col("cluster") == cluster)
    newest = asked.groupBy("cluster").agg(F.max("to_ms").alias("ms")).collect()
    return [row["ms"] for row in newest if row["ms"] is not None]


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
        .transform(columns_of(INTERNAL_FILES))
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
        .transform(columns_of(INTERNAL_FILES))
    )


def _kind(name: str) -> str:
    return "boolean" if name == "is_active" else "long"
