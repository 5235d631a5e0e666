"""List copies of logs, and read the segments that are asked for into digests of ranges."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.frames.engines import computed_once, expect
from kafka_segments.engine.frames.packing import TellLoad, packed, tell_nobody
from kafka_segments.engine.limits import Load, Work
from kafka_segments.engine.sources.list import list_sources
from kafka_segments.engine.tables.catalog import OFFSET_RANGES
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.errors import SourceError, UsageError
from kafka_segments.files.folders import kinds
from kafka_segments.files.storage.links import without_option
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.verbs.copies.divergence.decide.earlier_reads import earlier_reads_of
from kafka_segments.verbs.copies.divergence.decide.frames import (
    chosen_segments,
    compared_logs,
    described,
    listed_logs,
    unequal_parts,
    with_copy,
)
from kafka_segments.verbs.copies.divergence.decide.matching import matched_topics
from kafka_segments.verbs.copies.divergence.log_reading.tasks import read_segments
from kafka_segments.verbs.copies.divergence.options import CopyOptions
from kafka_segments.verbs.copies.divergence.policies.read import (
    NO_HISTORY,
    MetadataHistory,
    history_at_hand,
    with_history,
)
from kafka_segments.verbs.copies.divergence.policies.tasks import with_policy


class ListedCopies(NamedTuple):
    """The listing, with ``copy``, and the rows of ``listed_logs``, with ``is_compact``.

    ``at_hand``: rows of ``listed_logs`` under the names that the topics have in their copies.
    ``history``: what the metadata logs among the copies tell, where policies are by them.
    """

    listed: DataFrame
    logs: DataFrame
    at_hand: DataFrame
    history: MetadataHistory = NO_HISTORY


class ReadCopies(NamedTuple):
    """What is known of copies once their segments are digested; what is read twice is cached.

    Attributes:
        listed: the listing, with ``copy``.
        logs: rows of ``listed_logs``, with ``is_compact``.
        segments: rows of ``chosen_segments``.
        fresh: rows of ``read_segments``: what was read now.
        read: the same, with what earlier runs have read.
        copies: rows of ``described``.
        parts: rows of ``unequal_parts``.
        bytes_there: bytes of the segments that are compared.
        at_hand, history: as in ``ListedCopies``.
    """

    listed: DataFrame
    logs: DataFrame
    segments: DataFrame
    fresh: DataFrame
    read: DataFrame
    copies: DataFrame
    parts: DataFrame
    bytes_there: int
    at_hand: DataFrame
    history: MetadataHistory = NO_HISTORY


def list_copies(
    spark: SparkSession,
    options: CopyOptions,
    caches: ExitStack,
    told: "Transform | None" = None,
) -> ListedCopies:
    """List the copies.

    ``told``: adds what is known of cleanup policies (``with_policy``); None: by ``options`` and the
    metadata logs among the copies.

    Raises:
        SourceError: a folder that cannot be listed.
        UsageError: a metadata log has a policy that Kafka refuses.
    """
    sources = {source: name for name, source in options.copies}
    listed, loads = list_sources(spark, list(sources), caches, tell=tell_not_known)
    expect(spark, Work.COMPARE, loads.get(kinds.SEGMENT, Load()))
    if kinds.UNLISTED in loads:
        refuse_missing(listed)
    if kinds.NOT_FOLLOWED in loads:
        tell_links(listed)
    names = [name for name, _ in options.copies]
    of_copies = listed.transform(with_copy(sources))
    history = NO_HISTORY
    if told is None:
        older = () if options.anchor is None else (options.anchor,)
        history = history_at_hand(of_copies, caches, last=older)
        told = with_policy(with_history(options.policies, history))
    named = of_copies.transform(matched_topics(options.match, names))
    logs = named.transform(listed_logs).transform(told)
    at_hand = of_copies.transform(listed_logs)
    return ListedCopies(named, computed_once(logs, caches), at_hand, history)


def read_compared(
    spark: SparkSession, options: CopyOptions, caches: ExitStack, tell: TellLoad = tell_nobody
) -> ReadCopies:
    """List the copies, and read the segments of logs that two of them or more hold.

    Raises:
        SourceError: a folder that cannot be listed.
        UsageError: a copy that holds a log twice, or a warehouse without digests.
    """
    there = list_copies(spark, options, caches)
    refuse_doubles(there.logs)
    chosen = there.logs.transform(compared_logs(options.anchor, options.match))
    return read_copies(spark, options, there, chosen, caches, tell)


def read_copies(
    spark: SparkSession,
    options: CopyOptions,
    there: ListedCopies,
    chosen: DataFrame,
    caches: ExitStack,
    tell: TellLoad = tell_nobody,
) -> ReadCopies:
    """Read the segments of ``chosen``, some of the logs that were listed.

    Raises:
        UsageError: a warehouse without digests.
    """
    named, logs, at_hand, history = there
    segments = computed_once(named.transform(chosen_segments(chosen)), caches)
    known = _known(spark, segments, options, caches)
    unread = segments
    if known is not None:
        unread = computed_once(segments.join(known.select("path"), "path", how="left_anti"), caches)
    load = load_of(unread)
    bytes_there = load.bytes if known is None else load_of(segments).bytes
    expect(spark, Work.LIST, load)
    expect(spark, Work.DIGESTS, Load(load.segments, bytes_there))
    fresh = computed_once(
        unread.transform(packed(load, tell)).transform(read_segments(check_crc=options.check_crc)),
        caches,
    )
    read = fresh if known is None else fresh.unionByName(known, allowMissingColumns=True)
    copies = computed_once(read.transform(described(chosen)), caches)
    parts = read.transform(unequal_parts(copies))
    return ReadCopies(
        named, logs, segments, fresh, read, copies, parts, bytes_there, at_hand, history
    )


def _known(
    spark: SparkSession, segments: DataFrame, options: CopyOptions, caches: ExitStack
) -> DataFrame | None:
    """Return what the warehouses of ``digests`` know of segments; None: none was named.

    Raises:
        UsageError: a warehouse has no digests.
    """
    if not options.digests:
        return None
    tables = [Warehouse(spark, uri).read(OFFSET_RANGES) for uri in options.digests]
    found = segments.transform(earlier_reads_of(tables, check_crc=options.check_crc))
    return computed_once(found, caches)


def load_of(segments: DataFrame) -> Load:
    """Return how many segments there are, and their bytes."""
    found = segments.agg(
        F.count("*").alias("rows"), F.coalesce(F.sum("size_bytes"), F.lit(0)).alias("bytes")
    )
    row = found.collect()[0]
    return Load(row["rows"], row["bytes"])


def refuse_missing(listed: DataFrame) -> None:
    """Refuse folders that cannot be listed: what lies there would count as lost."""
    missing = listed.where(F.col("kind") == kinds.UNLISTED).first()
    if missing is not None:
        place = "/".join(part for part in (missing["source"], missing["relative_path"]) if part)
        raise SourceError(place, missing["reason"])


def tell_links(listed: DataFrame) -> None:
    """Say of each link that is left out where it leads."""
    links = listed.where(F.col("kind") == kinds.NOT_FOLLOWED)
    tell_not_known(map(link_text, links.collect()))


def link_text(row: Mapping[str, Any] | Row) -> str:
    """Return in words where a link leads, and what leaving it means to a comparison."""
    place = join_uri(row["source"], row["relative_path"], row["name"])
    return f"{place}: {without_option(row['reason'])}; what lies there is taken for absent"


def refuse_doubles(logs: DataFrame) -> None:
    """Refuse a copy that holds a log twice.

    Raises:
        UsageError: it does.
    """
    own = ("copy", "topic", "partition")
    folders = F.array_sort(F.collect_list("log_dir")).alias("folders")
    doubles: Sequence[Row] = (
        logs.groupBy(*own).agg(folders).where(F.size("folders") > 1).orderBy(*own).take(1)
    )
    if doubles:
        first = doubles[0]
        raise UsageError(
            f"copy {first['copy']} holds {first['topic']}-{first['partition']}"
            f" {len(first['folders'])} times, in {' and '.join(first['folders'])}: each broker's"
            " disks are a copy of their own"
        )
