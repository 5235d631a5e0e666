"""Compare logs with their mirrors, in the executors."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    StructType,
)

from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.errors import FileChangedError
from kafka_segments.files.storage.files import first_line
from kafka_segments.kafka.broker_rules.gaps import LACKS_END
from kafka_segments.verbs.copies.divergence.decide.compaction import Compaction
from kafka_segments.verbs.copies.divergence.decide.copies import Copy
from kafka_segments.verbs.copies.divergence.log_reading.log_files import is_of_tier
from kafka_segments.verbs.copies.divergence.mirror.decide.logs import MIRROR, NOTED, SOURCE
from kafka_segments.verbs.copies.divergence.mirror.decide.mirrored_log import MirroredLog
from kafka_segments.verbs.copies.divergence.mirror.decide.mirrors import (
    OffsetSync,
    compare_mirror,
    wrong_syncs,
)
from kafka_segments.verbs.copies.divergence.mirror.mirrored_records import LogSegments, MirrorReader
from kafka_segments.verbs.copies.divergence.tasks_by_log import KEYS

UNREAD, WRONG_SYNC = "unread", "wrong sync"
MIRRORED = StructType(
    row_fields(
        "topic string, partition int, mirror_topic string, row int, kind string,"
        " is_finding boolean, from_offset long, until_offset long, mirror_from long,"
        " mirror_until long, records long, detail string"
    )
)


def compare_mirrors(syncs: Sequence[LogSegments]) -> Transform:
    """Compare each log with its mirror, record by record.

    Needs: topic and partition of the source, mirror_topic, side (``SOURCE`` or ``MIRROR``), path,
        base_offset, size_bytes, start, high_watermark, ``NOTED``: a row for each segment.
        ``syncs``: logs of offset syncs.
    Gives: ``MIRRORED``, a row for each range of records, and for each sync that is wrong.
    """

    def compare(key: Any, found: pa.Table) -> pa.Table:
        topic, partition = (value.as_py() for value in key)
        segments = sorted(found.to_pylist(), key=lambda row: int(row["base_offset"]))
        log = {
            "topic": topic,
            "partition": partition,
            "mirror_topic": segments[0]["mirror_topic"],
        }
        rows = _compared(segments, syncs, (topic, partition))
        values = [{**log, "row": number, **row} for number, row in enumerate(rows)]
        return pa.Table.from_pylist(values, schema=to_arrow_schema(MIRRORED))

    return lambda segments: segments.groupBy(*KEYS).applyInArrow(compare, MIRRORED)


def _compared(
    segments: Sequence[dict[str, Any]], syncs: Sequence[LogSegments], log: tuple[str, int]
) -> list[dict[str, Any]]:
    reader = MirrorReader()
    rows: list[dict[str, Any]] = []
    logs: dict[str, MirroredLog] = {}
    try:
        for side in (SOURCE, MIRROR):
            own = [row for row in segments if row["side"] == side]
            files = [(row["path"], row["size_bytes"]) for row in own]
            read = reader.read(LogSegments(files, own[0]["start"]))
            logs[side] = _with_compaction(read.log, own[0])
            rows += [_problem(side, text) for text in read.problems]
            end, noted = max(read.log.end, own[-1]["base_offset"]), own[0]["high_watermark"]
            if noted is not None and end < noted:
                rows.append(_problem(f"{side}:", LACKS_END % (end, noted)))
        told = [sync for one in syncs for sync in reader.syncs(one, *log)]
    except (OSError, FileChangedError) as error:
        return [_problem("", f"{first_line(error)}: a file has changed since it was listed")]
    source, mirror = logs[SOURCE], logs[MIRROR]
    rows += [{**one._asdict(), "detail": ""} for one in compare_mirror(source, mirror)]
    return rows + [_wrong(sync) for sync in wrong_syncs(source, mirror, told)]


def _with_compaction(log: MirroredLog, noted: Mapping[str, Any]) -> MirroredLog:
    """Add up to where a log may have been compacted; ``noted``: its path and ``NOTED``."""
    copy = Copy(
        "",
        log.start,
        log.end,
        gaps=log.gaps,
        is_tiered=is_of_tier(noted["path"]),
        **{name: noted[name] for name in NOTED},
    )
    return log._replace(compacted_until=Compaction([copy], log).end_of(copy.name))


def _problem(side: str, text: str) -> dict[str, Any]:
    return {"kind": UNREAD, "is_finding": True, "detail": f"{side} {text}".lstrip()}


def _wrong(sync: OffsetSync) -> dict[str, Any]:
    return {
        "kind": WRONG_SYNC,
        "is_finding": True,
        "from_offset": sync.source,
        "until_offset": sync.source + 1,
        "mirror_from": sync.mirror,
        "mirror_until": sync.mirror + 1,
        "records": 1,
        "detail": "a group that fails over goes on at another record",
    }
