"""Compare a mirror with its source: list both, pair the logs by name, compare their records."""

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from kafka_segments.divergence.decide.frames import chosen_segments, listed_logs, with_copy
from kafka_segments.divergence.mirrored_records import LogSegments
from kafka_segments.divergence.read_copies import load_of, refuse_missing
from kafka_segments.divergence.tasks_mirror import MIRROR, SOURCE, compare_mirrors
from kafka_segments.errors import UsageError
from kafka_segments.sources.list import list_sources
from kafka_segments.spark.few_rows import expect_many_rows
from kafka_segments.spark.held import held
from kafka_segments.spark.packing import TellLoad, tell_nobody
from kafka_segments.spark.parallelism import default_parallelism

_SYNCS = r"^mm2-offset-syncs\..*\.internal$"
_INTERNAL = r"^(__.*|heartbeats|.*\.checkpoints\.internal|mm2-.*\.internal)$"
_LOG = ("topic", "partition")
_TASKS_A_CORE = 4  # logs are of different sizes


@dataclass(frozen=True)
class MirrorOptions:
    """What is compared. URIs are absolute.

    Attributes:
        source: where the source's logs lie. mirror: where the mirror's logs lie.
        prefix: what the mirror puts in front of the source's topic names.
    """

    source: tuple[str, ...]
    mirror: tuple[str, ...]
    prefix: str = ""

    def __post_init__(self) -> None:
        for uri in self.source:
            if uri in self.mirror:
                raise UsageError(f"{uri} is given as source and as mirror: leave one")


@dataclass(frozen=True)
class Mirrored:
    """The columns of ``tasks_mirror.MIRRORED``, and how many logs only one side has."""

    rows: DataFrame
    logs: int
    unmirrored: int


def run_mirror(
    spark: SparkSession, options: MirrorOptions, caches: ExitStack, tell: TellLoad = tell_nobody
) -> Mirrored:
    """Compare each log that both have; the rows are cached until ``caches`` closes.

    If several brokers hold a log, the replica that goes on furthest is read.

    Raises:
        SourceError: a folder cannot be listed.
        UsageError: no log is in both.
    """
    uris = [*options.source, *options.mirror]
    listed, _ = list_sources(spark, uris, caches)
    refuse_missing(listed)
    named = listed.transform(with_copy({uri: uri for uri in uris}))
    side = F.when(F.col("copy").isin(*options.source), SOURCE).otherwise(MIRROR)
    segments = held(_best_replicas(named, side), caches)
    syncs = _syncs(segments)
    source, mirror = (segments.where(F.col("side") == name) for name in (SOURCE, MIRROR))
    source = source.where(~F.col("topic").rlike(_INTERNAL)).withColumn(
        "mirror_topic", F.concat(F.lit(options.prefix), "topic")
    )
    names = source.select(*_LOG, "mirror_topic").distinct()
    renamed = mirror.withColumnRenamed("topic", "mirror_topic")
    paired = renamed.join(names, ["mirror_topic", "partition"], how="inner")
    both = paired.select(*_LOG).distinct()
    found = held(source.join(both, list(_LOG), how="left_semi").unionByName(paired), caches)
    logs, there = both.count(), names.count()
    if not logs:
        raise UsageError(
            f"no log of the source has a mirror: topics named {options.prefix or 'as the source'}…"
            " expected, --prefix says what stands in front of the source's names"
        )
    load = load_of(found)
    tasks = min(logs, _TASKS_A_CORE * default_parallelism(spark))
    if not load.is_little:
        expect_many_rows(spark)
    tell(load, tasks)
    spread = found.repartition(tasks, *_LOG)
    return Mirrored(held(spread.transform(compare_mirrors(syncs)), caches), logs, there - logs)


def _best_replicas(named: DataFrame, side: Column) -> DataFrame:
    """Return the segments of one replica of each log, with side, start and is_compacted."""
    logs = named.transform(listed_logs).withColumn("side", side)
    segments = named.transform(chosen_segments(logs)).withColumn("side", side)
    own = ("side", "copy", *_LOG)
    ends = segments.groupBy(*own).agg(
        F.max("base_offset").alias("_last"),
        F.min("base_offset").alias("_first"),
        F.max_by("size_bytes", "base_offset").alias("_size"),
    )
    furthest = Window.partitionBy("side", *_LOG).orderBy(F.desc("_last"), F.desc("_size"), "copy")
    best = ends.withColumn("_rank", F.row_number().over(furthest)).where("_rank = 1")
    starts = logs.select(*own, "log_start_offset", "cleaner_offset")
    chosen = best.join(starts, list(own), how="inner").select(
        *own,
        F.greatest("_first", F.coalesce("log_start_offset", F.lit(0))).alias("start"),
        (F.coalesce("cleaner_offset", F.lit(0)) > 0).alias("is_compacted"),
    )
    return segments.join(chosen, list(own), how="inner").select(
        "side", *_LOG, "path", "base_offset", "size_bytes", "start", "is_compacted"
    )


def _syncs(segments: DataFrame) -> list[LogSegments]:
    """Return the logs of offset syncs, of either side."""
    rows = segments.where(F.col("topic").rlike(_SYNCS)).orderBy("base_offset").collect()
    logs: dict[tuple[str, str, int], list[tuple[str, int]]] = {}
    for row in rows:
        name = row["side"], row["topic"], row["partition"]
        logs.setdefault(name, []).append((row["path"], row["size_bytes"]))
    return [LogSegments(found, 0) for found in logs.values()]
