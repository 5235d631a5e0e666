"""Readers of an object on S3 that is replaced while they read it say so, each in its own terms."""

from zlib import crc32

import pyarrow as pa
import pytest

from kafka_segments.decide.build_plan import SEGMENT_KEYS
from kafka_segments.index.recovery import RecoveryOptions
from kafka_segments.spark.audit import AuditScope, SegmentAuditor
from kafka_segments.spark.format_counts import _count
from kafka_segments.spark.log_reads import LogReads
from kafka_segments.spark.read_options import parse_options
from kafka_segments.spark.segment_rows import SegmentRows
from kafka_segments.storage import files
from kafka_segments.storage.bounds import Bounds
from kafka_segments.storage.format_counts import FormatCounter
from kafka_segments.storage.walk import find_segments

REPLACED = "it was replaced while it was read: "


@pytest.fixture
def source(object_store, broker, request, monkeypatch):
    """One real segment on S3, which another one replaces as soon as its last byte is read."""
    bucket = f"replaced-{crc32(request.node.name.encode())}"
    log = min((broker / "logs").glob("ct-two-partitions-0/*.log"))
    key = f"{bucket}/logs/t-0/{log.name}"
    object_store.files.create_dir(bucket)
    object_store.put(key, log.read_bytes())
    object_store.put(key.replace(".log", ".index"), bytes(8))
    real = files.ReadAhead.read_into

    def read_into(self, position, view):
        read = real(self, position, view)
        object_store.put(key, log.read_bytes()[:-1])
        return read

    monkeypatch.setattr(files.ReadAhead, "read_into", read_into)
    return f"s3://{bucket}/logs"


def test_the_data_source_gives_a_row_that_says_so(source):
    options = parse_options({"path": source, "rows": "batches", "columns": "offset,error"})
    (segment,) = find_segments([source]).segments
    schema = pa.schema([("offset", pa.int64()), ("error", pa.string())])

    rows = list(SegmentRows(options, Bounds(), schema).segment(segment))

    assert REPLACED in rows[-1]["error"][0].as_py()


def test_an_audit_judges_nothing(source):
    (found,) = find_segments([source]).segments
    segment = {
        **dict.fromkeys((*SEGMENT_KEYS, "log_dir")),
        **found._asdict(),
        "is_active": False,
        "is_clean": True,
        "is_recovered": False,
    }

    rows = list(SegmentAuditor(AuditScope(RecoveryOptions(), (4, 3))).audit(segment))

    told = [row for row in rows if "unfolded" not in row]
    assert told
    for row in told:
        assert row["verdict"] == "unjudged"
        assert REPLACED in str(row)


def test_a_search_gives_no_answer_but_the_reason(source):
    (segment,) = find_segments([source]).segments

    reads = LogReads()
    *found, _, problem = reads.answer((segment.path, 0, segment.size_bytes, 0, 0))
    reads.close()

    assert found == [None] * 5
    assert REPLACED in problem


def test_its_formats_are_not_counted(source):
    (segment,) = find_segments([source]).segments

    counted = _count(FormatCounter(decompresses=False), segment.path, segment.size_bytes)

    assert counted["formats"] is None
    assert REPLACED in counted["uncounted"]
