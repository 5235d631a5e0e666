"""Compare copies of logs: list, read into digests, compare where these differ, keep the rows."""

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.frames.collected import collect_together
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.packing import TellLoad, tell_nobody
from kafka_segments.engine.tables.catalog import DIVERGENCES, OFFSET_RANGES
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.run_columns import stamp_of
from kafka_segments.engine.tables.table_columns import columns_of
from kafka_segments.verbs.copies.divergence.absent_replicas import tell_absent_replicas
from kafka_segments.verbs.copies.divergence.decide.copies import Match
from kafka_segments.verbs.copies.divergence.decide.earlier_reads import kept_reads
from kafka_segments.verbs.copies.divergence.decide.frames import (
    equal_by_headers,
    other_topics,
    segments_of_copies,
)
from kafka_segments.verbs.copies.divergence.options import CopyOptions
from kafka_segments.verbs.copies.divergence.read_copies import ReadCopies, read_compared
from kafka_segments.verbs.copies.divergence.tasks_logs import compare_logs

_UNKNOWN = "how they differ from the others is not told"


@dataclass(frozen=True)
class Compared:
    """The rows of ``divergences``, and how many logs and bytes were compared.

    ``bytes_there``: the bytes of all segments that are compared; ``bytes_read``: how many of them
    were read. ``is_by_headers``: of batches the headers alone, not their records.
    """

    rows: DataFrame
    found: ReadCopies
    logs: int
    alone: int
    bytes_there: int
    bytes_read: int
    is_by_headers: bool = False


def run_divergence(
    spark: SparkSession,
    options: CopyOptions,
    caches: ExitStack,
    *,
    keep_in: Warehouse | None = None,
    tell: TellLoad = tell_nobody,
) -> Compared:
    """Compare the copies of each log that two of them or more hold.

    1. The sources are listed. The segments of these logs, except those that ``digests`` know, are
       packed into tasks by bytes, and read into digests of ranges of offsets.
    2. Ranges whose digests differ, or that a copy lacks, are compared log by log: by the headers of
       their batches where copies hold different things, by records where batches differ;
       with ``check_keys`` by keys where compaction may be why.
    3. The rows go to table ``divergences`` of ``keep_in``, and the digests to ``offset_ranges``;
       None: they are kept nowhere. The rows are cached until ``caches`` closes.

    Replicas that the metadata log among the copies names, and that are not at hand, are told; not
    with an ``anchor``, which is compared with what there is.

    Raises:
        SourceError: a folder that cannot be listed.
        UsageError: a copy that holds a log twice.
    """
    found = read_compared(spark, options, caches, tell)
    if options.anchor is None:
        tell_absent_replicas(found.history, found.at_hand, _UNKNOWN, match=options.match)
    own = ("copy", "topic", "partition")
    copies = found.copies.join(found.logs.select(*own, "has_many_ids"), list(own), how="inner")
    copies = copies.join(segments_of_copies(found.segments), list(own), how="left")
    compare = compare_logs(found.parts, check_crc=options.check_crc, check_keys=options.check_keys)
    rows = copies.transform(compare)
    if not options.check_crc:
        rows = rows.transform(equal_by_headers)
    if options.match == Match.BOTH:
        rows = rows.unionByName(found.logs.transform(other_topics))
    compared = computed_once(rows.withColumns(stamp_of(options.run_id, options.now_ms)), caches)
    rows = compared.transform(columns_of(DIVERGENCES))
    if keep_in is not None:
        _keep(keep_in, found.fresh, found.segments, options)
        keep_in.create(DIVERGENCES)
        keep_in.append(DIVERGENCES, rows)
    return Compared(
        rows=rows,
        found=found,
        is_by_headers=not options.check_crc,
        bytes_there=found.bytes_there,
        **_totals(found.logs, found.fresh, compared),
    )


def _keep(
    warehouse: Warehouse, fresh: DataFrame, segments: DataFrame, options: CopyOptions
) -> None:
    """Keep the digests for later runs."""
    kept = fresh.transform(kept_reads(segments, check_crc=options.check_crc))
    warehouse.create(OFFSET_RANGES)
    stamp = stamp_of(options.run_id, options.now_ms, clock="read_at")
    warehouse.merge(OFFSET_RANGES, kept.withColumns(stamp))


def _totals(logs: DataFrame, fresh: DataFrame, compared: DataFrame) -> dict[str, int]:
    """Count logs and bytes for ``Compared``."""
    counts = logs.select("topic", "partition", "copy_count").distinct()
    found = collect_together(
        {
            "logs": counts.agg(
                F.count_if(F.col("copy_count") > 1).alias("logs"),
                F.count_if(F.col("copy_count") == 1).alias("alone"),
            ),
            "first": fresh.agg(_sum_of("bytes_read").alias("bytes")),
            "then": compared.agg(_sum_of("bytes_read").alias("bytes")),
        }
    )
    read = found["first"][0]["bytes"] + found["then"][0]["bytes"]
    return {**found["logs"][0].asDict(), "bytes_read": read}


def _sum_of(column: str) -> Column:
    return F.coalesce(F.sum(column), F.lit(0))
