"""Find segments that logs below a build's sources lack: between two others, at the end, or all."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.frames.driver_rows import as_dicts, with_values
from kafka_segments.engine.frames.local_rows import stream_rows
from kafka_segments.engine.sources.broker_identity import lies_below
from kafka_segments.engine.tables.catalog import SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.files.folders import kinds
from kafka_segments.files.storage.files import list_folder, place
from kafka_segments.kafka.broker_rules.gaps import LACKS_END, Cleaned, told_gap
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.kafka.text.checkpoints import HIGH_WATERMARK, RECOVERY_POINT
from kafka_segments.kafka.text.names import parse_partition_folder
from kafka_segments.verbs.scan.decide.unchanged import lies_below as lies_below_in_driver
from kafka_segments.verbs.scan.planning import BuildWork

_ASKED = (
    *LOG_KEYS,
    *("base_offset", "path", "next_offset", "record_count", "damage", "vanished_at"),
)
_OF_LAST = ("path", "log_dir", "topic", "partition", "next_offset")
_PARTITION = ("cluster", "broker_id", "topic", "partition")
_NAMED_BY_SQL = "view segments_history of `sql` has all of their segments"


class MissingSegment(NamedTuple):
    """What a log lacks: the place of the missing segment, its last one or the log; what was found.

    ``named_by``: where all are named that are alike.
    """

    path: str
    found: str
    named_by: str = "`audit` names all"


class _Noted(NamedTuple):
    """What a log directory's checkpoints note of each of its logs, by topic and partition."""

    logs: dict[tuple[str, int], Any]
    has_cleaner_offsets: bool

    def why_lost(self, topic: str, partition: int) -> str | None:
        """Return in words what is noted of a log without a folder; None: nothing, or no records.

        A broker writes recovery points anew as soon as a folder goes, high watermarks only while
        the directory has logs. These alone tell nothing where recovery points are noted.

        Source: LogManager.asyncDelete, ReplicaManager.checkpointHighWatermarks.
        """
        noted = self.logs.get((topic, partition), {})
        point, high_watermark = noted.get("recovery_point"), noted.get("high_watermark")
        end, file = (high_watermark or 0), HIGH_WATERMARK
        if point is not None and point >= end:
            end, file = point, RECOVERY_POINT
        has_points = any(each["recovery_point"] is not None for each in self.logs.values())
        if (point is None and has_points) or end <= (noted.get("log_start_offset") or 0):
            return None
        return f"its folder was there and is gone, though {file} notes its records up to {end}"

    def cleaned(self, topic: str, partition: int) -> Cleaned:
        """Return what is noted of a log's compaction."""
        noted = self.logs.get((topic, partition), {})
        return Cleaned(self.has_cleaner_offsets, noted.get("cleaner_offset"))


_NOTHING_NOTED = _Noted({}, has_cleaner_offsets=False)


def find_missing(
    warehouse: Warehouse, sources: Sequence[str], work: BuildWork
) -> tuple[MissingSegment, ...]:
    """Return the gaps of all logs below the sources (``told_gap``), and those without their end.

    So are the logs that a build had found and whose folders are gone, though their log directories
    note records of them.
    """
    noted = {
        row["log_dir"]: _Noted(
            {(each["topic"], each["partition"]): each for each in row["offsets"] or ()},
            bool(row["meta"]["has_cleaner_offsets"]),
        )
        for row in _log_dirs(work.listed)
    }
    found = warehouse.columns_in_driver(SEGMENTS, _ASKED)
    if found is None:
        pairs, gone = _of_spark(warehouse, sources), _gone_of_spark(warehouse, sources)
    else:
        pairs, gone = _of_rows(found[0], sources), _gone_of_rows(found[0], sources)
    return (*_missing(pairs, noted), *_lost_folders(gone, noted))


def _log_dirs(listed: DataFrame) -> list[dict[str, Any]]:
    log_dirs = with_values(listed, {"kind": (kinds.LOG_DIR,)})
    return as_dicts(log_dirs, ("log_dir", "meta", "offsets"))


def _of_rows(rows: pa.Table, sources: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the segments before a gap, each with the base offset of the one behind it.

    So are the last ones of logs, without such an offset.
    """
    is_there = pc.and_(pc.is_null(rows["vanished_at"]), lies_below_in_driver(rows["path"], sources))
    rows = rows.filter(is_there)
    folders = pc.replace_substring_regex(rows["path"], r"/[^/]*$", "")
    rows = rows.append_column("_folder", folders)
    rows = rows.sort_by([("_folder", "ascending"), ("base_offset", "ascending")])
    before, behind = rows.slice(0, max(len(rows) - 1, 0)), rows.slice(1)
    before = before.append_column("next_base", behind["base_offset"].combine_chunks())
    is_same = pc.equal(before["_folder"], behind["_folder"].combine_chunks())
    is_gap = pc.and_(is_same, pc.greater(before["next_base"], before["next_offset"]))
    yield from before.filter(is_gap).to_pylist()
    for last in (before.filter(pc.invert(is_same)), rows.slice(len(before))):
        for row in last.select(_OF_LAST).to_pylist():
            yield {**row, "next_base": None}


def _of_spark(warehouse: Warehouse, sources: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the same of more rows than the driver reads."""
    folder = F.regexp_extract("path", "^(.*)/[^/]*$", 1)
    behind = Window.partitionBy("log_dir", folder).orderBy("base_offset")
    rows = (
        warehouse.read(SEGMENTS)
        .where(F.col("vanished_at").isNull() & lies_below(F.col("path"), sources))
        .select(*_ASKED)
        .withColumn("next_base", F.lead("base_offset").over(behind))
        .where(F.col("next_base").isNull() | (F.col("next_base") > F.col("next_offset")))
    )
    for row in stream_rows(rows):
        yield row.asDict(recursive=True)


def _gone_of_rows(rows: pa.Table, sources: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the logs of which no segment is left, not in another log directory of the broker."""
    gone = rows.filter(pc.is_valid(rows["vanished_at"]))
    gone = gone.filter(lies_below_in_driver(gone["path"], sources))
    gone = gone.group_by([*LOG_KEYS]).aggregate([])
    of_topics = pc.is_in(rows["topic"], value_set=gone["topic"].combine_chunks())
    there = rows.filter(pc.and_(of_topics, pc.is_null(rows["vanished_at"])))
    there = there.group_by([*_PARTITION]).aggregate([])
    yield from gone.join(there, [*_PARTITION], join_type="left anti").to_pylist()


def _gone_of_spark(warehouse: Warehouse, sources: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the same of more rows than the driver reads."""
    rows = warehouse.read(SEGMENTS, (*LOG_KEYS, "path", "vanished_at"))
    there = rows.where(F.col("vanished_at").isNull()).select(*_PARTITION)
    gone = rows.where(F.col("vanished_at").isNotNull() & lies_below(F.col("path"), sources))
    for row in stream_rows(
        gone.select(*LOG_KEYS).distinct().join(there, [*_PARTITION], how="left_anti")
    ):
        yield row.asDict()


def _lost_folders(
    gone: Iterable[dict[str, Any]], noted: dict[str, _Noted]
) -> Iterator[MissingSegment]:
    """Yield the logs whose folders are gone, not renamed as -delete or -stray, that are noted."""
    folders: dict[str, set[tuple[str, int]]] = {}
    for log in gone:
        log_dir, topic, partition = log["log_dir"], log["topic"], log["partition"]
        found = noted.get(log_dir, _NOTHING_NOTED).why_lost(topic, partition)
        if found is None:
            continue
        if log_dir not in folders:
            folders[log_dir] = set(_partitions_in(log_dir))
        if (topic, partition) not in folders[log_dir]:
            yield MissingSegment(f"{log_dir}/{topic}-{partition}", found, _NAMED_BY_SQL)


def _partitions_in(log_dir: str) -> Iterator[tuple[str, int]]:
    """Yield the partitions of which a log directory has a folder, however it is marked."""
    for entry in list_folder(place(log_dir)):
        folder = parse_partition_folder(entry.name)
        if folder is not None:
            yield folder.topic, folder.partition


def _missing(pairs: Iterable[dict[str, Any]], noted: dict[str, _Noted]) -> Iterator[MissingSegment]:
    for row in pairs:
        of_log = noted.get(row["log_dir"], _NOTHING_NOTED)
        found = _lost_end(row, of_log) if row["next_base"] is None else _gap(row, of_log)
        if found is not None:
            yield found


def _lost_end(row: dict[str, Any], noted: _Noted) -> MissingSegment | None:
    """Return what a log lacks behind its last segment, if its high watermark lies there.

    A segment that was not read has no end.
    """
    of_log = noted.logs.get((row["topic"], row["partition"]), {})
    high_watermark, start = of_log.get("high_watermark"), of_log.get("log_start_offset") or 0
    if high_watermark is None or row["next_offset"] is None:
        return None
    end = max(row["next_offset"], start)
    if end >= high_watermark:
        return None
    return MissingSegment(row["path"], LACKS_END % (end, high_watermark))


def _gap(row: dict[str, Any], noted: _Noted) -> MissingSegment | None:
    """Return the gap behind a sound segment, if it is to be told."""
    damage = row["damage"]
    if damage is not None and damage["kind"] != DamageKind.PREALLOCATED_TAIL:
        return None
    key = (row["topic"], row["partition"])
    told = told_gap(
        row["topic"],
        row["base_offset"],
        row["next_offset"],
        row["next_base"],
        records=row["record_count"],
        by=noted.cleaned(*key),
        log_start=noted.logs.get(key, {}).get("log_start_offset") or 0,
    )
    if told is None:
        return None
    return MissingSegment(f"{row['path'].rpartition('/')[0]}/{told.gap.file}", told.found)
