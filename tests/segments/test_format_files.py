"""Index files of every format made of one segment, damaged ones among them."""

from pathlib import Path

import pytest

from kafka_segments.errors import UsageError
from kafka_segments.files.segments.format_files import Around, FormatFiles, Made
from kafka_segments.kafka.index.formats.by_name import FORMATS, KAFKAS_OWN
from kafka_segments.kafka.index.formats.every_n_index import EveryNFormat, EveryNRule
from kafka_segments.kafka.index.formats.index_format import IndexFormat
from kafka_segments.kafka.index.formats.kip33_index import Kip33Format, WithoutTimestamps
from kafka_segments.kafka.index.formats.minute_index import MinuteFormat, MinuteVariant
from kafka_segments.kafka.index.segment.offset_index import decode_offset_index
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.time_index import decode_time_index
from support.logs.log_reading import reader_of
from support.logs.strategies import (
    LOG_APPEND_TIME,
    MAX_INT32,
    example_e1,
    gzip_wrapper,
    v0_message,
    v2_batch,
)
from support.model.plain_decoder import plain_records

BASE, E1 = example_e1()
MINUTE = 60_000
KIP33 = Kip33Format()


def made(
    log: bytes, options: IndexFormat, around: Around | None = None, *, interval_bytes: int = 200
) -> Made:
    recoverer = SegmentRecoverer(RecoveryOptions(index_interval_bytes=interval_bytes))
    recovery = recoverer.recover(reader_of(log), size_bytes=len(log), base_offset=BASE)
    return FormatFiles(options).make(
        recovery, reader_of(log), base_offset=BASE, around=around or Around()
    )


def times(data: bytes | None) -> list[tuple[int, int]]:
    assert data is not None
    return [tuple(row) for row in decode_time_index(data, base_offset=BASE).tolist()]


def offsets(data: bytes | None) -> list[tuple[int, int]]:
    assert data is not None
    return [tuple(row) for row in decode_offset_index(data, base_offset=BASE).tolist()]


KAFKAS = made(E1, KAFKAS_OWN).files


def test_kafka() -> None:
    assert set(KAFKAS) == {".index", ".timeindex"}
    assert offsets(KAFKAS[".index"]) == [(1005, 293), (1007, 525), (1009, 818)]
    assert times(KAFKAS[".timeindex"]) == [(7002, 1005), (9000, 1009)]


def test_kip33_has_another_time_index() -> None:
    closed = made(E1, KIP33, Around(next_base_offset=1020)).files
    active = made(E1, KIP33).files

    assert closed[".index"] == KAFKAS[".index"]
    assert times(closed[".timeindex"]) == [(7002, 1006), (9000, 1020)]
    assert times(active[".timeindex"]) == [(7002, 1006), (9000, 1010)]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (WithoutTimestamps.EMPTY, []),
        (WithoutTimestamps.MTIME_NEXT, [(77, 1010)]),
        (WithoutTimestamps.MTIME_FIRST, [(77, 1003)]),
    ],
)
def test_kip33_without_timestamps(rule: WithoutTimestamps, expected: list[tuple[int, int]]) -> None:
    inner = [v0_message(offset, None, b"v") for offset in (1003, 1004)]
    log = gzip_wrapper(inner, offset=1004) + v0_message(1005, None, b"v")
    options = Kip33Format(without_timestamps=rule)

    closed = made(log, options, Around(next_base_offset=1010, last_modified_ms=77)).files
    active = made(log, options, Around(last_modified_ms=77)).files

    assert times(closed[".timeindex"]) == expected
    assert active[".timeindex"] == b""


def test_kip33_whose_next_segment_is_out_of_reach_has_no_time_index() -> None:
    found = made(E1, KIP33, Around(next_base_offset=BASE + MAX_INT32 + 1))

    assert found.files == {".index": KAFKAS[".index"], ".timeindex": None}
    assert found.damage is not None
    assert found.damage.kind == DamageKind.NOT_INDEXABLE
    assert found.damage.message == (
        "no .timeindex in format kip33: offset 2147484648 does not fit base offset 1000:"
        " an index entry holds 0 to 2147483647 above it"
    )


def minutes_log() -> bytes:
    records = [(60500, None, None), (119999, None, None)]
    later = [(120000, None, None), (61000, None, None)]
    return (
        v2_batch(1000, records)
        + v2_batch(1002, later, codec=1)
        + v2_batch(1004, [(240010, None, None)], flags=LOG_APPEND_TIME)
    )


def test_minute_counts_the_records_within_compressed_batches() -> None:
    found = made(minutes_log(), MinuteFormat())

    assert found.damage is None
    assert set(found.files) == {".index", ".timeindex", ".time.index"}
    assert found.files[".timeindex"] is None
    assert times(found.files[".time.index"]) == [(60000, 1000), (120000, 1002), (240000, 1004)]


def test_minute_derived_takes_what_the_offset_index_has() -> None:
    options = MinuteFormat(minute_variant=MinuteVariant.DERIVED)

    found = made(minutes_log(), options, interval_bytes=0).files

    assert offsets(found[".index"])[0][0] == 1003
    assert times(found[".time.index"]) == [(120000, 1003), (240000, 1004)]


def test_every_n_has_another_offset_index() -> None:
    by_offset = made(E1, EveryNFormat(every_n=4)).files
    options = EveryNFormat(every_n=4, every_n_rule=EveryNRule.BY_ORDINAL)
    by_ordinal = made(E1[175:], options).files

    assert offsets(by_offset[".index"]) == [(1000, 0), (1004, 293), (1008, 700)]
    assert by_offset[".timeindex"] == KAFKAS[".timeindex"]
    assert offsets(by_ordinal[".index"]) == [(1002, 0), (1006, 350)]


@pytest.mark.parametrize("made_by", FORMATS.values(), ids=FORMATS)
def test_an_empty_segment_has_empty_files(made_by: type[IndexFormat]) -> None:
    found = made(b"", made_by(), Around(next_base_offset=BASE))

    assert found.damage is None
    assert {data for data in found.files.values() if data is not None} == {b""}


@pytest.mark.parametrize("made_by", FORMATS.values(), ids=FORMATS)
def test_where_kafka_leaves_no_indexes_there_are_none_in_any_format(
    made_by: type[IndexFormat],
) -> None:
    found = made(v2_batch(5, [(1, None, None)]), made_by())

    assert set(found.files.values()) == {None}
    assert found.damage is not None
    assert found.damage.kind == DamageKind.OFFSET_OVERFLOW


@pytest.mark.parametrize("options", [MinuteFormat(), EveryNFormat(every_n=1)], ids=str)
def test_a_batch_that_cannot_be_decoded_counts_as_one_record(options: IndexFormat) -> None:
    log = v2_batch(1000, [(MINUTE, None, None)])
    bad = v2_batch(1001, [(2 * MINUTE, None, None)] * 3, codec=1, payload=b"not gzip")

    found = made(log + bad, options)

    assert found.damage is not None
    assert (found.damage.kind, found.damage.position) == (DamageKind.UNDECODABLE, len(log))
    if isinstance(options, MinuteFormat):
        assert times(found.files[".time.index"]) == [(60000, 1000), (120000, 1001)]
    else:
        assert offsets(found.files[".index"]) == [(1000, 0), (1001, len(log))]


def test_records_whose_offsets_go_back_leave_no_index_of_every_n() -> None:
    log = v2_batch(1004, [(5, None, None)]) + v2_batch(1000, [(6, None, None)])

    found = made(log, EveryNFormat(every_n=1), interval_bytes=4096)

    assert found.files[".index"] is None
    assert found.damage is not None
    assert found.damage.message == (
        "no .index in format every-n: offset 1000 after offset 1004: entries must rise"
    )


def test_damage_of_the_log_itself_comes_first() -> None:
    log = E1 + v2_batch(1010, [(9, None, None)])[:-1]

    found = made(log, MinuteFormat())

    assert found.damage is not None
    assert found.damage.kind == DamageKind.PARTIAL_BATCH
    assert times(found.files[".time.index"]) == [(0, 1000)]


def test_every_n_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="--every-n is 0, the least is 1"):
        EveryNFormat(every_n=0)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (KAFKAS_OWN, "kafka"),
        (KIP33, "kip33:empty"),
        (MinuteFormat(), "minute:map"),
        (EveryNFormat(every_n=7), "every-n:7:by-offset"),
    ],
)
def test_a_format_is_named_with_its_variant(options: IndexFormat, name: str) -> None:
    assert str(options) == name


def test_a_brokers_segments_record_by_record(broker: Path) -> None:
    made_by = (
        (FormatFiles(MinuteFormat()), ".time.index"),
        (FormatFiles(EveryNFormat(every_n=7)), ".index"),
        (FormatFiles(KIP33), ".timeindex"),
    )
    recoverer = SegmentRecoverer(RecoveryOptions())
    for path in sorted((broker / "logs").glob("*/*.log")):
        log, base_offset = path.read_bytes(), int(path.name[:20])
        recovery = recoverer.recover(reader_of(log), size_bytes=len(log), base_offset=base_offset)
        records = list(plain_records(log))
        minutes: dict[int, int] = {}
        for record in records:
            minutes.setdefault(record.timestamp // MINUTE * MINUTE, record.offset)
        sevenths = [(r.offset, r.batch_position) for r in records if r.offset % 7 == 0]

        minute_data, every_data, kip33_data = (
            maker.make(recovery, reader_of(log), base_offset=base_offset, around=Around()).files[
                suffix
            ]
            for maker, suffix in made_by
        )

        assert minute_data is not None
        assert every_data is not None
        assert kip33_data is not None
        found = decode_time_index(minute_data, base_offset=base_offset)
        assert found.tolist() == [[minute, offset] for minute, offset in minutes.items()], path
        found = decode_offset_index(every_data, base_offset=base_offset)
        assert found.tolist() == [list(entry) for entry in sevenths], path
        for timestamp, offset in decode_time_index(kip33_data, base_offset=base_offset).tolist():
            assert all(r.offset >= offset for r in records if r.timestamp > timestamp), path
