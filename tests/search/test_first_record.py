"""The first record at or after a timestamp and an offset, against a plain loop over records."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_segments.errors import FileChangedError, UnreadableBatchError
from kafka_segments.kafka.broker_rules.lookups import lookup_kip33, lookup_timestamp
from kafka_segments.kafka.codecs.streams import DecompressionError
from kafka_segments.kafka.index.formats.kip33_index import SegmentPlace, kip33_entries
from kafka_segments.kafka.index.segment.offset_index import lookup_offset
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.find.search.first_record import FirstRecordFinder
from support.logs.log_reading import reader_of
from support.logs.strategies import empty_batch, v2_batch
from support.model.plain_decoder import plain_records, positions

FROM_THE_START = -(2**63)
SOUND = (
    "v0-v1-v2-in-one-segment",
    "v1-gzip-createtime",
    "v2-mixed-codecs",
    "v1-compacted-gaps",
    "fuzz-00",
    "v0-lz4",
)


@pytest.mark.slow
@settings(max_examples=150)
@given(data=st.data())
def test_it_is_the_one_that_a_loop_over_all_records_finds(
    synthetic: Path, data: st.DataObject
) -> None:
    case = data.draw(st.sampled_from(SOUND))
    log = data.draw(st.sampled_from(sorted((synthetic / case / "t-0").glob("*.log")))).read_bytes()
    records = list(plain_records(log))
    near = data.draw(st.sampled_from(records))
    least_timestamp_ms = near.timestamp + data.draw(st.sampled_from([-1, 0, 1]))
    least_offset = data.draw(st.sampled_from([0, near.offset, near.offset + 1]))
    starts = [start for start, _ in positions(log) if start <= near.batch_position]

    found = FirstRecordFinder().find(
        reader_of(log),
        start=(start := data.draw(st.sampled_from(starts))),
        end=len(log),
        least_timestamp_ms=least_timestamp_ms,
        least_offset=least_offset,
    )

    expected = next(
        (
            (record.offset, record.timestamp, record.batch_position)
            for record in records
            if record.batch_position >= start
            and record.timestamp >= least_timestamp_ms
            and record.offset >= least_offset
        ),
        None,
    )
    assert (found and (found.offset, found.timestamp_ms, found.position)) == expected


def test_a_search_reads_the_batches_it_passes_and_no_further(synthetic: Path) -> None:
    log = next((synthetic / "v2-mixed-codecs" / "t-0").glob("*.log")).read_bytes()
    finder = FirstRecordFinder()

    finder.find(
        reader_of(log), start=0, end=len(log), least_timestamp_ms=FROM_THE_START, least_offset=0
    )

    first_end = next(end for _, end in positions(log))
    assert finder.bytes_read <= 8192 + first_end < len(log)


def test_a_batch_whose_records_are_all_gone_is_passed() -> None:
    gone = empty_batch(5, last_offset_delta=4, max_timestamp=90)
    log = gone + v2_batch(10, [(80, None, b"v")])

    found = FirstRecordFinder().find(
        reader_of(log), start=0, end=len(log), least_timestamp_ms=FROM_THE_START, least_offset=0
    )

    assert found is not None
    assert (found.offset, found.timestamp_ms, found.position) == (10, 80, len(gone))


def test_nothing_is_found_past_the_end(synthetic: Path) -> None:
    finder = FirstRecordFinder()

    found = finder.find(reader_of(b""), start=10, end=0, least_timestamp_ms=0, least_offset=0)

    assert (found, finder.bytes_read) == (None, 0)


def test_a_file_shorter_than_the_table_says_is_named(synthetic: Path) -> None:
    log = next((synthetic / "v2-mixed-codecs" / "t-0").glob("*.log")).read_bytes()

    with pytest.raises(FileChangedError, match=f"ends at byte {len(log)}, it had {len(log) + 50}"):
        FirstRecordFinder().find(
            reader_of(log), start=0, end=len(log) + 50, least_timestamp_ms=2**62, least_offset=0
        )


def test_records_that_cannot_be_decoded_are_said() -> None:
    batch = bytearray(61 + 9)
    batch[8:12] = (49 + 9).to_bytes(4, "big")
    batch[16] = 2
    batch[57:61] = (1).to_bytes(4, "big")
    batch[61:] = b"\xff" * 9

    with pytest.raises(DecompressionError, match="varint"):
        FirstRecordFinder().find(
            reader_of(bytes(batch)), start=0, end=70, least_timestamp_ms=0, least_offset=0
        )


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (bytes(30), "batch length is 0, the least is 14"),
        (v2_batch(1, [(9, None, b"x")])[:40], "the batch says 69 bytes, 40 are left in the file"),
        (b"\x00" * 9, "9 bytes left, too few for a batch"),
    ],
)
def test_where_no_batch_can_be_read_the_search_does_not_say_that_there_is_no_record(
    tail: bytes, reason: str
) -> None:
    log = v2_batch(0, [(5, None, b"x")])
    end = len(log) + len(tail)

    with pytest.raises(UnreadableBatchError, match=f"batch at byte {len(log)}: {reason}"):
        FirstRecordFinder().find(
            reader_of(log + tail), start=0, end=end, least_timestamp_ms=9, least_offset=0
        )


@settings(max_examples=60)
@given(data=st.data())
def test_a_search_by_kip33s_index_finds_the_same_record(
    synthetic: Path, data: st.DataObject
) -> None:
    case = data.draw(st.sampled_from(SOUND))
    file = data.draw(st.sampled_from(sorted((synthetic / case / "t-0").glob("*.log"))))
    log, base_offset = file.read_bytes(), int(file.stem)
    recovered = SegmentRecoverer(RecoveryOptions(index_interval_bytes=512)).recover(
        reader_of(log), size_bytes=len(log), base_offset=base_offset
    )
    offsets, times = recovered.offset_entries, recovered.time_entries
    assert offsets is not None and times is not None
    place = SegmentPlace(base_offset, None, recovered.next_offset, 0)
    target = data.draw(st.sampled_from(list(plain_records(log)))).timestamp + data.draw(
        st.sampled_from([-1, 0, 1])
    )
    kip33 = lookup_kip33(
        kip33_entries(offsets, times, place), target, base_offset=base_offset
    ).offset
    kafkas = lookup_timestamp(times, target, base_offset=base_offset).offset

    found = [
        FirstRecordFinder().find(
            reader_of(log),
            start=lookup_offset(offsets, offset, base_offset=base_offset).position,
            end=len(log),
            least_timestamp_ms=target,
            least_offset=least_offset,
        )
        for offset, least_offset in ((kip33, kip33), (kafkas, base_offset))
    ]

    assert found[0] == found[1]


@pytest.mark.parametrize("case", SOUND)
def test_searches_in_one_segment_share_what_they_read(synthetic: Path, case: str) -> None:
    log = min((synthetic / case / "t-0").glob("*.log")).read_bytes()
    shared = FirstRecordFinder()
    starts = [start for start, _ in positions(log)]

    for record in plain_records(log):
        search = {
            "start": record.batch_position if record.offset % 2 else starts[0],
            "end": len(log),
            "least_timestamp_ms": record.timestamp,
            "least_offset": record.offset,
        }
        alone = FirstRecordFinder()
        assert shared.find(reader_of(log), **search) == alone.find(reader_of(log), **search)
    search["start"] = record.batch_position
    shared.find(reader_of(log), **search)
    before = shared.bytes_read
    shared.find(reader_of(log), **search)
    assert shared.bytes_read == before
    shared.forget()
    shared.find(reader_of(log), **search)
    assert shared.bytes_read > before
