"""Decide which segments a build reads: those that are new or have changed.

Every function takes rows of a listing (``sources.listing_rows.Listed``) or of table ``segments``.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.sources.broker_identity import file_path, lies_below
from kafka_segments.engine.sources.lost_log_dirs import lost_log_dirs
from kafka_segments.engine.tables.keys import SEGMENT_KEYS, Transform
from kafka_segments.files.folders import kinds
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.kafka.index.segment.recovery_options import INDEX
from kafka_segments.kafka.text.names import IN_LOG_DIR
from kafka_segments.verbs.scan.decide.unchanged import fingerprint_columns

SCAN, RETOUCH, SAME = "scan", "retouch", "same"
GONE, KNOWN = "gone", "known"
READ_AGAIN = (
    *(DamageKind.CHANGED, DamageKind.VANISHED),
    *(DamageKind.UNREADABLE, DamageKind.NOT_PERMITTED),
)
"""Damage after which the next run reads the segment again; ``with_verdicts`` has more."""
_NS_A_MS = 1_000_000


def plan_scan(
    known: DataFrame | None,
    *,
    options: Column | str,
    full: bool,
    needs_next: bool = False,
    is_first_look: bool = False,
) -> Transform:
    """Mark what a build does with each segment found.

    1. ``scan``: the segment is not known; or its size, its mtime or the options differ from what
       is known; or its file is another one, as where a broker has renamed the folder; or ``full``
       is set. With ``needs_next`` the next segment's base offset counts like the size. With
       ``is_first_look`` an unchanged file that was read as a whole is not looked at, whatever the
       options were.
    2. ``retouch``: the segment is known and unchanged, but it became or ceased to be the active
       one, or it had vanished.
    3. ``same``: there is nothing to do.

    ``options`` has what a fingerprint says of the options.

    Needs: rows of kind segment with cluster and broker_id, and what ``options`` is made of;
        ``known``: rows of ``segments``.
    Gives: the same with ``fingerprint``, ``index_format_before`` and ``plan``.
    """
    in_words = F.lit(options) if isinstance(options, str) else options
    fingerprint = F.concat_ws("/", *fingerprint_columns(needs_next=needs_next), in_words)

    def transform(found: DataFrame) -> DataFrame:
        marked = found.withColumn("fingerprint", fingerprint)
        if known is None:
            return marked.withColumns(
                {
                    "index_format_before": F.lit(None).cast("string"),
                    "plan": F.lit(SCAN),
                }
            )
        before = known.select(
            *SEGMENT_KEYS,
            F.col("path").alias("_path"),
            F.col("fingerprint").alias("_fingerprint"),
            F.col("is_active").alias("_is_active"),
            F.col("index_format").alias("index_format_before"),
            F.col("vanished_at").isNotNull().alias("_had_vanished"),
            *([_what_was_read()] if is_first_look else ()),
        )
        is_same = F.col("fingerprint").eqNullSafe(F.col("_fingerprint")) & ~F.lit(full)
        if is_first_look:
            is_same = is_same | _is_known_better()
        is_same &= F.col("_path").eqNullSafe(file_path())
        is_touched = F.col("_had_vanished") | (F.col("is_active") != F.col("_is_active"))
        return (
            marked.join(before, list(SEGMENT_KEYS), how="left")
            .withColumn(
                "plan",
                F.when(~is_same, SCAN).when(is_touched, RETOUCH).otherwise(SAME),
            )
            .drop("_path", "_fingerprint", "_is_active", "_had_vanished", "_read")
        )

    return transform


def last_modified_ms() -> Column:
    """Return the mtime of a file that was listed, in the unit of the tables."""
    return F.expr(f"mtime_ns div {_NS_A_MS}")


def _what_was_read() -> Column:
    """Return, as ``_read``, what tells of a row of ``segments`` whether it is as its file is."""
    return F.struct("checked", "size_bytes", "last_modified_ms", "damage").alias("_read")


def _is_known_better() -> Column:
    """Tell whether a known row comes from reading the whole file that was found.

    A row without a fingerprint was damaged by what its log shows, or its file changed while it was
    read; the latter is no reading of a whole file.
    """
    of_file = F.concat_ws("/", "size_bytes", "mtime_ns", F.lit(""))
    is_of_file = F.col("_fingerprint").startswith(of_file)
    has_changed = F.coalesce(F.col("_read.damage.kind").isin(*READ_AGAIN), F.lit(False))
    is_judged = (
        F.col("_fingerprint").isNull()
        & ~has_changed
        & (F.col("_read.size_bytes") == F.col("size_bytes"))
        & (F.col("_read.last_modified_ms") == last_modified_ms())
    )
    is_whole = F.coalesce(F.col("_read.checked") != INDEX, F.lit(True))
    return F.coalesce(is_whole & (is_of_file | is_judged), F.lit(False))


def retouched(planned: DataFrame) -> Transform:
    """Return the known rows of the segments to retouch, as they are now: active or not, and found.

    Needs: rows of ``segments``; ``planned``: rows of ``plan_scan``.
    Gives: the columns of ``segments``.
    """
    now = planned.where(F.col("plan") == RETOUCH).select(
        *SEGMENT_KEYS, F.col("is_active").alias("_is_active")
    )

    def transform(known: DataFrame) -> DataFrame:
        return (
            known.join(now, list(SEGMENT_KEYS), how="inner")
            .withColumn("is_active", F.col("_is_active"))
            .withColumn("vanished_at", F.lit(None).cast("timestamp"))
            .drop("_is_active")
        )

    return transform


def gone(found: DataFrame, unseen: DataFrame) -> Transform:
    """Return the keys of the known segments that are gone.

    Segments below a folder that could not be listed, or at a link that was not followed, have not
    vanished: nobody looked there.

    Needs: rows of ``segments``; ``found``: the segments of the listing; ``unseen``: its rows of
        the kinds ``UNSEEN``.
    Gives: ``SEGMENT_KEYS``.
    """

    def transform(known: DataFrame) -> DataFrame:
        return (
            known.where(F.col("vanished_at").isNull())
            .select(*SEGMENT_KEYS, "path")
            .join(found.select(*SEGMENT_KEYS), list(SEGMENT_KEYS), how="left_anti")
            .transform(not_below(unseen))
            .select(*SEGMENT_KEYS)
        )

    return transform


def not_below(unseen: DataFrame) -> Transform:
    """Leave out what lies where nobody looked.

    Needs: path; ``unseen``: rows of a listing, of the kinds ``UNSEEN``.
    Gives: the same.
    """
    hidden = unseen.select(F.concat(file_path(), F.lit("/")).alias("_unseen"))
    is_hidden = F.concat("path", F.lit("/")).startswith(F.col("_unseen"))
    return lambda rows: rows.join(F.broadcast(hidden), is_hidden, how="left_anti")


def vanished(keys: DataFrame, *, now: Column) -> Transform:
    """Return the known rows of the segments that are gone, with ``vanished_at`` set.

    Needs: rows of ``segments``; ``keys``: see ``gone``.
    Gives: the columns of ``segments``.
    """

    def transform(known: DataFrame) -> DataFrame:
        rows = known.join(keys, list(SEGMENT_KEYS), how="left_semi")
        return rows.withColumns({"is_active": F.lit(False), "vanished_at": now})

    return transform


def count_work(planned: DataFrame, gone_keys: DataFrame, known: DataFrame) -> DataFrame:
    """Count the segments by what a build does with them, in one query.

    Needs: rows of ``plan_scan``, of ``gone``, and of ``segments``.
    Gives: ``plan`` (also ``GONE``, and ``KNOWN`` where there are rows of ``segments`` at all),
        ``segments``, ``bytes``.
    """
    counted = ("plan", "size_bytes")
    no_bytes = F.lit(0).cast("long").alias("size_bytes")
    any_known = known.select("base_offset").limit(1)
    rows = (
        planned.select(*counted)
        .unionByName(gone_keys.select(F.lit(GONE).alias("plan"), no_bytes))
        .unionByName(any_known.select(F.lit(KNOWN).alias("plan"), no_bytes))
    )
    return rows.groupBy("plan").agg(
        F.count("*").alias("segments"),
        F.sum("size_bytes").alias("bytes"),
    )


def count_lost(
    known: DataFrame, vanished: DataFrame, listed: DataFrame, sources: Sequence[str]
) -> DataFrame:
    """Count below each source the segments that are known, and those of logs that are gone.

    A broker that deletes records leaves a log its last segment. So the segments of logs of which
    none is left count: a disk that is not mounted, or another folder under its name, has lost them.
    So are those of each log directory that is none any more, however few of its source's they are;
    not in tiered storage, where folders go with their last object.

    Needs: ``known`` and ``vanished``: rows of ``segments``, the latter those that were not found
        again; ``listed``: rows of a listing, with the segments of all logs of ``vanished``.
    Gives: the columns of ``sources.missing.Lost``; no row for a source of which nothing is known.
    """
    found = listed.where(F.col("kind") == kinds.SEGMENT)
    here = found.select(_folder(file_path()).alias("_folder")).distinct()
    there = vanished.select("path", "log_dir", _folder(F.col("path")).alias("_folder"))
    gone = there.join(here, "_folder", how="left_anti").drop("_folder")
    before = known.where(F.col("vanished_at").isNull()).select("path", "log_dir")
    both = before.withColumn("lost", F.lit(0)).unionByName(gone.withColumn("lost", F.lit(1)))
    counts = (F.count_if(F.col("lost") == 0).alias("known"), F.sum("lost").alias("lost"))
    of_source = F.coalesce(
        *(F.when(lies_below(F.col("path"), [source]), F.lit(source)) for source in sources)
    )
    by_dir = both.where(F.col("path").rlike(IN_LOG_DIR)).groupBy("log_dir").agg(*counts)
    by_source = both.groupBy(of_source.alias("source")).agg(*counts)
    return by_source.unionByName(by_dir.transform(lost_log_dirs(listed)))


def _folder(path: Column) -> Column:
    return F.regexp_extract(path, "^(.*)/[^/]*$", 1)
