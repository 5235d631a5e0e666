"""What is said of records of remote segments that were not read, not known, or contradicted."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.tables.catalog import (
    INTERNAL_FILES,
    INTERNAL_RECORDS,
    METADATA_PARTITIONS,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.messages.records import REMOTE_LOG_TOPIC, decode_internal
from kafka_segments.verbs.find.internals.tier.run_unread import unread_records
from support.logs.remote_records import COPIED, added, updated
from support.spark.filled_tables import fill

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("few")]

LOG = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "topic": REMOTE_LOG_TOPIC}
WHOLE = (added(1, 0, 9), updated(1, COPIED))
OF_NO_KNOWN_TYPE = b"\x01\x63\x00"


def _rows(values: Sequence[bytes], **log: Any) -> list[dict[str, Any]]:
    found = [decode_internal(REMOTE_LOG_TOPIC, None, value) for value in values]
    file = {**LOG, **log, "file": f"{0:020d}.log", "leader_epoch": 0, "key_json": None}
    return [
        {**file, "row": at, "offset": at, "kind": one.kind, "value_json": one.value_json()}
        for at, one in enumerate(found)
    ]


@pytest.mark.parametrize(
    ("rows", "named", "told"),
    [
        (_rows(WHOLE), 1, []),
        (_rows(WHOLE), None, ["1 partitions were read, and no metadata says how many there are"]),
        ([row for n in range(50) for row in _rows(WHOLE, partition=n)], None, []),
        (_rows(WHOLE), 2, [f"{REMOTE_LOG_TOPIC}-1: no log was read"]),
        (_rows([*WHOLE, OF_NO_KNOWN_TYPE]), 1, ["its record at offset 2 is of no known type"]),
        (_rows(WHOLE) + _rows(WHOLE[:1], broker_id=2), 1, []),
        (
            _rows(WHOLE) + _rows((WHOLE[0], WHOLE[0]), broker_id=2),
            1,
            ["have other records at offset 1 in leader epoch 0"],
        ),
    ],
)
def test_records_that_may_be_about_any_segment_are_told(
    spark: SparkSession,
    caches: ExitStack,
    tmp_path: Path,
    rows: list[Mapping[str, Any]],
    named: int | None,
    told: list[str],
) -> None:
    tables = Warehouse(spark, str(tmp_path))
    keys = ("cluster", "broker_id", "log_dir", "topic", "partition", "file")
    files = {tuple((key, row.get(key, 0)) for key in keys) for row in rows}
    fill(tables, INTERNAL_RECORDS, rows)
    fill(
        tables, INTERNAL_FILES, [{**dict(file), "rows": 9, "records_version": 1} for file in files]
    )
    if named is not None:
        topic = {"cluster": "c", "topic": REMOTE_LOG_TOPIC}
        fill(tables, METADATA_PARTITIONS, [{**topic, "partition": n} for n in range(named)])

    lines = unread_records(tables, tables.read(INTERNAL_RECORDS), "c", caches)

    assert len(lines) == len(told), lines
    assert all(text in line for line, text in zip(lines, told, strict=True)), lines
