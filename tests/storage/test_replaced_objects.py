"""Readers of an object on S3 that is replaced while they read it say so, each in its own terms."""

import shutil
from zlib import crc32

import pyarrow as pa
import pytest

from kafka_segments.engine.rows.read_options import parse_options
from kafka_segments.engine.rows.segment_rows import SegmentRows
from kafka_segments.engine.rows.time_bounds import proven_greatest_timestamp
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.files.changes.index_files import IndexOutput
from kafka_segments.files.folders.walk import find_segments
from kafka_segments.files.segments.bounds import Bounds
from kafka_segments.files.storage import files
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.change.migrate.inventory.format_counter import FormatCounter
from kafka_segments.verbs.change.migrate.inventory.tasks import _count
from kafka_segments.verbs.find.latency.tasks import WrapperTimes
from kafka_segments.verbs.find.search.tasks import LogReads, RecordSearch
from kafka_segments.verbs.judge.audit.tasks import AuditScope, SegmentAuditor
from support.logs.strategies import stamped_wrapper

REPLACED = "it was replaced while it was read: "


@pytest.fixture
def put_replaced(object_store, request, monkeypatch):
    """Gives what puts a segment on S3, which another one replaces as soon as it is read."""
    bucket = f"replaced-{crc32(request.node.name.encode())}"
    object_store.files.create_dir(bucket)

    def put(name, log):
        key = f"{bucket}/logs/t-0/{name}"
        object_store.put(key, log)
        object_store.put(key.replace(".log", ".index"), bytes(8))
        real = files.ReadAhead.read_into

        def read_into(self, position, view):
            read = real(self, position, view)
            object_store.put(key, log[:-1])
            return read

        monkeypatch.setattr(files.ReadAhead, "read_into", read_into)
        return f"s3://{bucket}/logs"

    return put


@pytest.fixture
def log(broker):
    """A segment of a broker's."""
    return min((broker / "logs").glob("ct-two-partitions-0/*.log"))


@pytest.fixture
def source(put_replaced, log):
    """That segment on S3, replaced as soon as it is read."""
    return put_replaced(log.name, log.read_bytes())


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
    *found, _, problem = reads.answer(RecordSearch(segment.path, 0, 0, segment.size_bytes, 0, 0))
    reads.close()

    assert found == [None] * 5
    assert REPLACED in problem


def test_damage_in_what_a_search_read_of_it_is_no_reason(put_replaced, log):
    source = put_replaced(log.name, log.read_bytes()[:1000] + bytes(1000))
    (segment,) = find_segments([source]).segments

    reads = LogReads()
    *_, problem = reads.answer(RecordSearch(segment.path, 0, 0, segment.size_bytes, 2**62, 0))
    reads.close()

    assert REPLACED in problem
    assert "batch at byte" not in problem


def test_its_formats_are_not_counted(source):
    (segment,) = find_segments([source]).segments

    counted = _count(FormatCounter(decompresses=False), segment.path, segment.size_bytes)

    assert counted["formats"] is None
    assert REPLACED in counted["uncounted"]


def test_its_index_files_prove_nothing(source, log, broker, tmp_path):
    shutil.copytree(broker / "rebuilt" / log.parent.name, tmp_path / "t-0")
    shutil.copy(log, tmp_path / "t-0")
    (kept,) = find_segments([str(tmp_path)]).segments
    (replaced,) = find_segments([source]).segments

    output = IndexOutput(str(tmp_path), "", {str(tmp_path): "", source: ""})
    assert proven_greatest_timestamp(kept, output) is not None
    assert proven_greatest_timestamp(replaced, output) is None


def test_times_of_its_wrappers_are_left_out(put_replaced, tmp_path):
    wrapper = stamped_wrapper([1_000, 1_010], appended=1_030)
    name = f"{0:020d}.log"
    (tmp_path / name).write_bytes(wrapper)
    source = put_replaced(name, wrapper)

    for folder, times in ((str(tmp_path), [(1_000, 1_030)]), (f"{source}/t-0", [])):
        assert WrapperTimes().of(f"{folder}/{name}", len(wrapper)) == times
