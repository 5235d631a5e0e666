"""Compare copies of logs: list, read into digests, compare where these differ, keep the rows."""

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.divergence.decide.copies import Match
from kafka_segments.divergence.decide.frames import (
    chosen_segments,
    compared_logs,
    described,
    listed_logs,
    other_topics,
    unequal_parts,
    with_copy,
)
from kafka_segments.divergence.decide.known import kept_reads, known_reads
from kafka_segments.divergence.decide.matching import matched_topics
from kafka_segments.divergence.tasks import read_segments
from kafka_segments.divergence.tasks_logs import compare_logs
from kafka_segments.errors import SourceError, UsageError
from kafka_segments.sources import kinds
from kafka_segments.sources.list import list_sources
from kafka_segments.spark.collected import collect_together
from kafka_segments.spark.few_rows import expect_many_rows
from kafka_segments.spark.held import held
from kafka_segments.spark.packing import Load, TellLoad, count_tasks, pack_segments, tell_nobody
from kafka_segments.spark.parallelism import default_parallelism
from kafka_segments.tables.catalog import DIVERGENCES, OFFSET_RANGES
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.keys import Transform


@dataclass(frozen=True)
class CopyOptions:
    """What is compared. URIs are absolute; ``now_ms`` is the run's clock.

    Attributes:
        copies: names and URIs; a name can have several URIs, such as a broker's log directories.
        now_ms: the clock.
        warehouse: URI of the tables; None: the result is kept nowhere.
        check_crc: every byte is read and checksums are verified; else headers alone are read.
        anchor: logs that this copy lacks are not compared; None: all are that two copies hold.
        match: which logs are one.
        digests: URIs of warehouses: files that they know, and that have not changed, are not read.
        run_id: names the run.

    Raises:
        UsageError: fewer than two copies, or a URI that two copies have.
    """

    copies: tuple[tuple[str, str], ...]
    now_ms: int
    warehouse: str | None = None
    check_crc: bool = True
    anchor: str | None = None
    match: Match = Match.BOTH
    digests: tuple[str, ...] = ()
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        names = {name for name, _ in self.copies}
        if len(names) < 2:
            found = ", ".join(sorted(names)) or "none"
            raise UsageError(
                f"two copies or more are compared, found {found}: give --copy NAME=URI for each"
            )
        sources = [source for _, source in self.copies]
        for source in sources:
            if sources.count(source) > 1:
                raise UsageError(f"{source} is given as two copies: leave one")


@dataclass(frozen=True)
class Compared:
    """The rows of ``divergences``, and what it took.

    ``bytes_read`` and ``bytes_there``: of the segments of logs that are compared.
    """

    rows: DataFrame
    found: "ReadCopies"
    logs: int
    alone: int
    bytes_there: int
    bytes_read: int


def run_divergence(
    spark: SparkSession,
    options: CopyOptions,
    caches: ExitStack,
    *,
    dry_run: bool = False,
    tell: TellLoad = tell_nobody,
) -> Compared:
    """Compare the copies of each log that two of them or more hold.

    1. The sources are listed. The segments of these logs, but for those of which ``digests`` tell,
       are packed into tasks by bytes, and read into digests of ranges of offsets.
    2. Ranges with other digests, or that a copy lacks, are compared log by log: by their batches'
       headers where copies hold different things, by records where these differ.
    3. The rows go to table ``divergences`` of the warehouse, what was read to ``offset_ranges``;
       the rows are cached until ``caches`` closes.

    Raises:
        SourceError: a folder that cannot be listed.
        UsageError: a copy that holds a log twice.
    """
    found = read_copies(spark, options, caches, tell)
    own = ("copy", "topic", "partition")
    copies = found.copies.join(found.logs.select(*own, "has_many_ids"), list(own), how="inner")
    rows = copies.transform(compare_logs(found.parts, check_crc=options.check_crc))
    if options.match == Match.BOTH:
        rows = rows.unionByName(found.logs.transform(other_topics))
    compared = held(rows.transform(_stamped(options, "decided_at")), caches)
    rows = compared.select(*DIVERGENCES.schema.fieldNames())
    if options.warehouse is not None and not dry_run:
        warehouse = Warehouse(spark, options.warehouse)
        _keep(warehouse, found.fresh, found.segments, options)
        warehouse.create(DIVERGENCES)
        warehouse.append(DIVERGENCES, rows)
    return Compared(
        rows=rows,
        found=found,
        bytes_there=found.bytes_there,
        **_totals(found.logs, found.fresh, compared),
    )


class ReadCopies(NamedTuple):
    """What is known of copies once their segments are digested; cached as far as it is read twice.

    Attributes:
        listed: the listing, with ``copy``.
        logs: rows of ``listed_logs``.
        segments: rows of ``chosen_segments``.
        fresh: rows of ``read_segments``: what was read now.
        read: the same, and what digests of earlier runs tell.
        copies: rows of ``described``.
        parts: rows of ``unequal_parts``.
        bytes_there: of the segments that are compared.
    """

    listed: DataFrame
    logs: DataFrame
    segments: DataFrame
    fresh: DataFrame
    read: DataFrame
    copies: DataFrame
    parts: DataFrame
    bytes_there: int


def read_copies(
    spark: SparkSession, options: CopyOptions, caches: ExitStack, tell: TellLoad = tell_nobody
) -> ReadCopies:
    """List the copies, and read the segments of logs that two of them or more hold.

    Raises:
        SourceError: a folder that cannot be listed.
        UsageError: a copy that holds a log twice, or a warehouse without digests.
    """
    sources = {source: name for name, source in options.copies}
    listed, loads = list_sources(spark, list(sources), caches)
    if not loads.get(kinds.SEGMENT, Load()).is_little:
        expect_many_rows(spark)
    if kinds.UNLISTED in loads:
        refuse_missing(listed)
    names = [name for name, _ in options.copies]
    named = listed.transform(with_copy(sources)).transform(matched_topics(options.match, names))
    logs = held(named.transform(listed_logs), caches)
    _refuse_doubles(logs)
    chosen = logs.transform(compared_logs(options.anchor, options.match))
    segments = held(named.transform(chosen_segments(chosen)), caches)
    known = _known(spark, segments, options, caches)
    unread = segments
    if known is not None:
        unread = held(segments.join(known.select("path"), "path", how="left_anti"), caches)
    load = load_of(unread)
    tasks = count_tasks(load, cores=default_parallelism(spark))
    tell(load, tasks)
    fresh = held(
        unread.transform(pack_segments(load, tasks=tasks)).transform(
            read_segments(check_crc=options.check_crc)
        ),
        caches,
    )
    read = fresh if known is None else fresh.unionByName(known, allowMissingColumns=True)
    copies = read.transform(described(chosen))
    parts = read.transform(unequal_parts(copies))
    there = load.bytes if known is None else load_of(segments).bytes
    return ReadCopies(named, logs, segments, fresh, read, copies, parts, there)


def _known(
    spark: SparkSession, segments: DataFrame, options: CopyOptions, caches: ExitStack
) -> DataFrame | None:
    """Return what the warehouses of ``digests`` know of segments; None: nothing was asked.

    The first run of many that keep digests in their own warehouse finds none there.

    Raises:
        UsageError: another warehouse that has no digests.
    """
    warehouses = [Warehouse(spark, uri) for uri in options.digests]
    tables = [
        warehouse.read(OFFSET_RANGES)
        for warehouse in warehouses
        if warehouse.root != options.warehouse or warehouse.version(OFFSET_RANGES) is not None
    ]
    if not tables:
        return None
    found = segments.transform(known_reads(tables, check_crc=options.check_crc))
    return held(found, caches)


def _keep(
    warehouse: Warehouse, fresh: DataFrame, segments: DataFrame, options: CopyOptions
) -> None:
    """Keep what was read for later runs."""
    kept = fresh.transform(kept_reads(segments, check_crc=options.check_crc))
    warehouse.create(OFFSET_RANGES)
    warehouse.merge(OFFSET_RANGES, kept.transform(_stamped(options, "read_at")))


def _stamped(options: CopyOptions, clock: str) -> Transform:
    """Add the run, and its clock as column ``clock``."""
    now = F.timestamp_millis(F.lit(options.now_ms))
    return lambda rows: rows.withColumn("run_id", F.lit(options.run_id)).withColumn(clock, now)


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


def load_of(segments: DataFrame) -> Load:
    """Return how many segments there are, and their bytes."""
    found = segments.agg(F.count("*").alias("rows"), _sum_of("size_bytes").alias("bytes"))
    row = found.collect()[0]
    return Load(row["rows"], row["bytes"])


def refuse_missing(listed: DataFrame) -> None:
    """Refuse what cannot be listed: what lies there would count as lost."""
    missing = listed.where(F.col("kind") == kinds.UNLISTED).first()
    if missing is not None:
        place = "/".join(part for part in (missing["source"], missing["relative_path"]) if part)
        raise SourceError(place, missing["reason"])


def _refuse_doubles(logs: DataFrame) -> None:
    doubles: Sequence[Row] = logs.where("folders > 1").orderBy("copy", "topic", "partition").take(2)
    if doubles:
        first = doubles[0]
        where = " and ".join(row["log_dir"] for row in doubles)
        raise UsageError(
            f"copy {first['copy']} holds {first['topic']}-{first['partition']}"
            f" {first['folders']} times, in {where}: each broker's disks are a copy of their own"
        )
