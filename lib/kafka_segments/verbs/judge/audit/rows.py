"""Rows of an audit, one for each file, as they come from the executors."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.catalog import INDEX_AUDITS
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.broker_rules.index_files.judgement import Judgement
from kafka_segments.verbs.judge.audit.decide.consequences import Consequence, is_finding

Row = dict[str, Any]
LOG_COLUMNS = ("cluster", "broker_id", "log_dir", "topic", "partition", "source", "relative_path")
_OF_THE_RUN = ("kafka_version", "run_id", "decided_at")
AUDITED = StructType(
    [
        *(
            StructField(column.name, column.dataType)
            for column in INDEX_AUDITS.schema
            if column.name not in _OF_THE_RUN
        ),
        *row_fields("source string, relative_path string, unfolded binary, end_offset long"),
    ]
)
"""The columns of the rows: those of ``index_audits`` but for the run's, and some for the way there.

``unfolded``: a ``.txnindex`` that is judged when the segments before it are; null in all other
rows. ``end_offset``: the last offset in the manifest of a tiered segment; null in all other rows.
"""

_ROWS_A_BATCH = 2_000


def audit_row(
    log: Row,
    name: str,
    base_offset: int | None,
    size_bytes: int | None,
    judgement: Judgement,
    consequence: Consequence,
    link: str | None = None,
) -> Row:
    """Return the row of a file in the folder of ``log``.

    ``link`` is where the link leads that the file was read through; None: it is no link.
    """
    return {
        **{column: log[column] for column in LOG_COLUMNS},
        "base_offset": base_offset,
        "path": join_uri(log["source"], log["relative_path"], name),
        "suffix": judgement.suffix,
        "size_bytes": size_bytes,
        "verdict": judgement.verdict.value,
        "kind": judgement.kind and judgement.kind.value,
        "message": judgement.message if link is None else f"a link to {link}: {judgement.message}",
        "entries": judgement.entries,
        "rebuilt_entries": judgement.rebuilt_entries,
        "effect": consequence.effect.value,
        "consequence": consequence.text,
        "action": consequence.action,
        "is_finding": is_finding(judgement, consequence),
    }


def to_batches(rows: Iterable[Row], arrow_schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Turn rows into record batches, some thousands each."""
    held: list[Row] = []
    for row in rows:
        held.append(row)
        if len(held) == _ROWS_A_BATCH:
            yield pa.RecordBatch.from_pylist(held, schema=arrow_schema)
            held = []
    yield pa.RecordBatch.from_pylist(held, schema=arrow_schema)
