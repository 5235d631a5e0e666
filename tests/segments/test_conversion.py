"""Conversion of messages v0 and v1 to batches v2, against Kafka's cleaner and by hand."""

import hashlib
import io
import os
import struct
from pathlib import Path
from typing import Literal

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_segments.errors import FileChangedError
from kafka_segments.files.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.files.segments.conversion import Conversion, ConversionOptions, HazardKind
from kafka_segments.files.segments.converter import SegmentConverter
from kafka_segments.files.segments.digest import RecordDigest, RecordDigester
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from support.kafka.kafka_referee import Referee, RefereeError
from support.logs.log_reading import reader_of
from support.logs.sound_logs import LZ4, compressed
from support.logs.strategies import (
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    Segment,
    damaged,
    gzip_wrapper,
    segments,
    transaction_marker,
    v0_message,
    v1_message,
    v2_batch,
)
from support.model.plain_decoder import decompress, plain_records, positions

PARTITIONS = int(os.environ.get("CONVERSION_PARTITIONS", "14"))
SEED = int(os.environ.get("CONVERSION_SEED", "7"))
KINDS: tuple[Literal["legacy"], Literal["mixed"]] = ("legacy", "mixed")
HEADER_BYTES = 61
SMALL = ConversionOptions(max_batch_bytes=64 * 1024 * 1024)
_CONVERTER = SegmentConverter(SMALL)
_DIGESTER = RecordDigester(max_batch_bytes=SMALL.max_batch_bytes)


def _convert(
    log: bytes, *, timestamp_ms: int = -1, options: ConversionOptions | None = None
) -> tuple[bytes, Conversion]:
    out = io.BytesIO()
    converter = _CONVERTER if options is None else SegmentConverter(options)
    made = converter.convert(
        reader_of(log), out.write, size_bytes=len(log), timestamp_ms=timestamp_ms
    )
    assert made.converted_bytes == len(out.getvalue())
    return out.getvalue(), made


def _digest(log: bytes) -> RecordDigest:
    return _DIGESTER.digest(reader_of(log), size_bytes=len(log))


def _hazards(made: Conversion) -> dict[HazardKind, tuple[int, int]]:
    return {hazard.kind: (hazard.count, hazard.position) for hazard in made.hazards}


def _refused(log: bytes) -> tuple[HazardKind, int]:
    _, made = _convert(log)
    assert made.refusal is not None
    return made.refusal.kind, made.refusal.position


def _batches(log: bytes) -> list[bytes]:
    return [log[start:end] for start, end in positions(log)]


def _plain_batch(batch: bytes) -> tuple[bytes, ...]:
    """Give what of a batch v2 does not depend on the compressor: no size, no CRC."""
    codec = batch[22] & 7
    records = decompress(codec, batch[HEADER_BYTES:]) if codec else batch[HEADER_BYTES:]
    return batch[:8], batch[12:17], batch[21:HEADER_BYTES], records


def _plain_digest(log: bytes) -> str:
    digest = hashlib.sha256()

    def add(data: bytes | None) -> None:
        digest.update(struct.pack(">i", -1 if data is None else len(data)) + (data or b""))

    for record in plain_records(log):
        digest.update(struct.pack(">q", record.offset))
        add(record.key)
        add(record.value)
        digest.update(struct.pack(">i", len(record.headers)))
        for name, value in record.headers:
            add(name.encode())
            add(value)
    return digest.hexdigest()


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """What is compiled at the first segment that is converted and digested."""
    converted, _ = _convert(gzip_wrapper([v1_message(0, 5, b"k", b"v")], offset=0))
    _digest(converted)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(PARTITIONS))
def test_random_logs_are_converted_as_kafkas_cleaner_does(
    referee: Referee, tmp_path: Path, number: int
) -> None:
    rewritten, kind = 0, KINDS[number % 2]
    folder = referee.generate(tmp_path / "logs", SEED + number, kind)
    for log in sorted(folder.glob("*.log")):
        rewritten += referee.clean(log, tmp_path / "cleaned")
        kafkas = _batches((tmp_path / "cleaned").read_bytes())

        converted, made = _convert(log.read_bytes())

        assert made.refusal is None
        ours = _batches(converted)
        assert [_plain_batch(batch) for batch in ours] == [_plain_batch(b) for b in kafkas]
        plain = [not batch[22] & 7 for batch in kafkas]
        same = [mine == theirs for mine, theirs in zip(ours, kafkas, strict=True)]
        assert all(is_same for is_same, is_plain in zip(same, plain, strict=True) if is_plain)
        assert {hazard.kind for hazard in made.hazards} <= {HazardKind.RECOMPRESSED}
        (tmp_path / "ours").write_bytes(converted)
        referee.records(log, tmp_path / "before")
        referee.records(tmp_path / "ours", tmp_path / "after")
        assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
        assert _digest(log.read_bytes()) == _digest(converted)
    assert rewritten


@pytest.mark.parametrize("number", range(6))
def test_the_converted_segment_recovers_like_the_first(
    referee: Referee, tmp_path: Path, number: int
) -> None:
    recoverer = SegmentRecoverer(RecoveryOptions())
    folder = referee.generate(tmp_path, SEED + number, "mixed")
    for log in sorted(folder.glob("*.log")):
        base, before = int(log.stem), log.read_bytes()
        after, _ = _convert(before)

        first, second = (
            recoverer.recover(reader_of(data), size_bytes=len(data), base_offset=base)
            for data in (before, after)
        )

        assert second.damage is None
        assert second.magics in {(2,), ()}
        for name in ("next_offset", "max_timestamp", "offset_of_max_timestamp", "batch_count"):
            assert getattr(second, name) == getattr(first, name), name


@pytest.mark.slow
@settings(max_examples=150)
@given(segments())
def test_whatever_is_converted_has_the_same_records(segment: Segment) -> None:
    converted, made = _convert(segment.log)

    if made.refusal is not None:
        assert made.refusal.kind == HazardKind.NEGATIVE_TIMESTAMP
        return
    assert [record[1:] for record in plain_records(converted)] == [
        record[1:] for record in plain_records(segment.log)
    ]
    assert made.valid_bytes == len(segment.log)
    digests = _digest(segment.log), _digest(converted)
    assert digests[0] == digests[1]
    assert digests[0].sha256 == _plain_digest(segment.log)


def test_a_message_v0_has_no_timestamp_unless_one_is_given() -> None:
    log = v0_message(5, None, b"hi") + v1_message(6, NO_TIMESTAMP, b"k", None)

    kept, made = _convert(log)
    dated, _ = _convert(log, timestamp_ms=77)

    assert kept == v2_batch(5, [(-1, None, b"hi")]) + v2_batch(6, [(-1, b"k", None)])
    assert dated == v2_batch(5, [(77, None, b"hi")]) + v2_batch(6, [(77, b"k", None)])
    assert (made.converted_batch_count, made.converted_record_count) == (2, 2)
    assert made.hazards == ()


def test_a_message_v1_keeps_its_timestamp_and_type() -> None:
    log = v1_message(6, 1000, None, b"hi") + v1_message(
        7, 2000, b"", b"", attributes=LOG_APPEND_TIME
    )

    converted, _ = _convert(log, timestamp_ms=77)

    assert converted == v2_batch(6, [(1000, None, b"hi")]) + v2_batch(
        7, [(2000, b"", b"")], flags=LOG_APPEND_TIME
    )


def test_a_compressed_set_becomes_one_batch_with_its_gaps() -> None:
    inner = [v1_message(0, 50, b"a", b"1"), v1_message(7, 40, None, None)]

    converted, made = _convert(gzip_wrapper(inner, offset=107, timestamp=50))

    wanted = v2_batch(100, [(50, b"a", b"1"), (40, None, None)], offset_deltas=[0, 7], codec=1)
    assert _plain_batch(converted) == _plain_batch(wanted)
    assert _hazards(made) == {HazardKind.RECOMPRESSED: (1, 0)}


def test_a_set_with_log_append_time_keeps_it_for_all_its_records() -> None:
    inner = cramjam.gzip.compress(v1_message(0, 50, None, b"1") + v0_message(1, None, b"2"))
    wrapper = v1_message(9, 900, None, bytes(inner), attributes=1 | LOG_APPEND_TIME)

    converted, made = _convert(wrapper, timestamp_ms=77)

    assert [record.timestamp for record in plain_records(converted)] == [900, 900]
    assert [record.offset for record in plain_records(converted)] == [8, 9]
    assert _hazards(made)[HazardKind.TIMESTAMP_CHANGED] == (1, 0)


def test_the_offset_of_a_set_stays_where_its_last_message_is_gone() -> None:
    log = gzip_wrapper([v0_message(3, None, b"a"), v0_message(4, None, b"b")], offset=6)

    converted, made = _convert(log)

    base_offset, last_delta = *struct.unpack_from(">q", converted), converted[26]
    assert (base_offset, last_delta) == (3, 3)
    assert _hazards(made)[HazardKind.LAST_OFFSET] == (1, 0)


def test_batches_v2_stay_as_they_are() -> None:
    kept = (
        v2_batch(0, [(5, b"k", None)], flags=TRANSACTIONAL, producer_id=9, headers=[("h", None)])
        + transaction_marker(1, timestamp=6, producer_id=9)
        + v2_batch(2, [], payload=b"no records at all", record_count=1)
        + v2_batch(3, [(1, None, b"x")], magic=3)
    )
    log = kept + v0_message(4, None, b"m") + kept

    converted, made = _convert(log)

    assert converted == kept + v2_batch(4, [(-1, None, b"m")]) + kept
    assert (made.kept_batch_count, made.converted_batch_count) == (8, 1)


REFUSED = [
    (
        gzip_wrapper([v0_message(4, None, b"a"), v0_message(4, None, b"b")], offset=4),
        HazardKind.OFFSET_ORDER,
    ),
    (
        gzip_wrapper([v0_message(4, None, b"a"), v0_message(4 + 2**31, None, b"b")], offset=9),
        HazardKind.OFFSET_SPAN,
    ),
    (v1_message(4, -2, None, b"a"), HazardKind.NEGATIVE_TIMESTAMP),
    (v1_message(4, 5, None, b"no gzip", attributes=1), HazardKind.UNDECODABLE),
    (gzip_wrapper([b"no message, but long enough"], offset=4), HazardKind.UNDECODABLE),
]


@pytest.mark.parametrize(("log", "kind"), REFUSED)
def test_what_kafka_would_not_write_refuses_the_segment(
    referee: Referee, tmp_path: Path, log: bytes, kind: HazardKind
) -> None:
    good = v0_message(1, None, b"good")
    (tmp_path / "log").write_bytes(good + log)

    assert _refused(good + log) == (kind, len(good))
    with pytest.raises(RefereeError):
        referee.clean(tmp_path / "log", tmp_path / "cleaned")


def test_a_set_whose_own_offset_lies_too_far_refuses_the_segment() -> None:
    log = gzip_wrapper([v0_message(4, None, b"a")], offset=4 + 2**31)

    assert _refused(log) == (HazardKind.OFFSET_SPAN, 0)


@settings(max_examples=100)
@given(st.data())
def test_a_damaged_segment_is_converted_up_to_where_recovery_cuts_it(data: st.DataObject) -> None:
    segment = data.draw(segments(max_batches=6))
    log = data.draw(damaged(segment))

    converted, made = _convert(log)

    if made.refusal is not None:
        assert made.refusal.position < len(log)
        return
    walk = ChunkReader(ChunkOptions(needs_body=False)).read(reader_of(log), size_bytes=len(log))
    batches = sum(chunk.batches.shape[1] for chunk in walk)
    assert made.converted_batch_count + made.kept_batch_count == batches
    assert made.valid_bytes <= len(log)
    assert len(_batches(converted)) == batches


def test_a_message_whose_fields_do_not_fill_it_refuses_the_segment() -> None:
    odd = bytearray(v0_message(1, None, b"abc"))
    odd[12 + 4 + 2 + 4 + 3] = 2  # value length 2 of 3 bytes
    log = v0_message(0, None, b"a") + bytes(odd[:12]) + struct.pack(">I", _crc32(odd[16:]))
    log += bytes(odd[16:])

    _, made = _convert(log)

    assert made.refusal is not None
    assert made.refusal.kind == HazardKind.UNDECODABLE
    assert "its fields take" in made.refusal.message
    digest = _digest(log)
    assert digest.record_count == 1
    assert digest.undecodable is not None
    assert digest.undecodable.startswith("the batch at byte 27: ")


def _crc32(data: bytes) -> int:
    import zlib

    return zlib.crc32(data)


def test_what_recovery_would_cut_off_is_not_written() -> None:
    good = v0_message(1, None, b"good")

    converted, made = _convert(good + good[:20])
    zeros, preallocated = _convert(good + bytes(500))

    assert converted == zeros == v2_batch(1, [(-1, None, b"good")])
    assert made.valid_bytes == preallocated.valid_bytes == len(good)
    assert _hazards(made) == {HazardKind.DAMAGE: (1, len(good))}
    assert preallocated.hazards == ()


def test_a_batch_above_the_topics_limit_is_a_hazard() -> None:
    log = v0_message(0, None, bytes(10)) + v0_message(1, None, bytes(200))
    options = ConversionOptions(max_message_bytes=200, max_batch_bytes=1024 * 1024)

    _, made = _convert(log, options=options)

    assert _hazards(made) == {HazardKind.BATCH_TOO_LARGE: (1, 36)}
    assert made.largest_batch_bytes == 61 + 2 + 1 + 1 + 1 + 1 + 2 + 200 + 1


def test_a_batch_too_large_for_memory_refuses_the_segment() -> None:
    log = v0_message(0, None, bytes(5 * 1024 * 1024))
    small = ConversionOptions(max_batch_bytes=4 * 1024 * 1024)

    _, made = _convert(log, options=small)
    digest = RecordDigester(max_batch_bytes=4 * 1024 * 1024).digest(
        reader_of(log), size_bytes=len(log)
    )

    assert made.refusal is not None
    assert made.refusal.message == "the batch has 5242906 bytes, at most 4194304 are read"
    assert digest.undecodable == "the batch at byte 0: 5242906 bytes, more than a batch may have"


def test_large_messages_and_many_headers_find_room() -> None:
    value = bytes(range(256)) * 20_000
    many = [(f"{number}", b"") for number in range(60_000)]
    log = v1_message(0, 5, None, value) + v0_message(1, value, b"") * 2
    log += v2_batch(3, [(7, None, None)], headers=many)

    converted, made = _convert(log)

    assert made.refusal is None
    assert [record[1:] for record in plain_records(converted)] == [
        record[1:] for record in plain_records(log)
    ]
    assert _digest(log) == _digest(converted)
    assert _digest(log).sha256 == _plain_digest(log)


@pytest.mark.parametrize("codec", [1, 2, 3])
@pytest.mark.parametrize("size", [0, 31, 40_000, 200_000])
def test_each_codec_holds_sets_of_any_size(codec: int, size: int) -> None:
    noise = hashlib.shake_256(b"seed").digest(size)
    inner = v1_message(0, 5, b"k", noise) + v1_message(1, 6, b"k", bytes(size))
    packers = {
        1: cramjam.gzip.compress,
        2: cramjam.snappy.compress_raw,
        3: lambda data: compressed(data, LZ4),
    }
    log = v1_message(11, 6, None, bytes(packers[codec](inner)), attributes=codec)

    converted, made = _convert(log)

    assert made.refusal is None
    assert converted[22] == codec
    assert [record[2:] for record in plain_records(converted)] == [
        (5, b"k", noise, []),
        (6, b"k", bytes(size), []),
    ]


def test_an_empty_segment_and_one_too_large() -> None:
    empty, made = _convert(b"")
    converter, out = SegmentConverter(ConversionOptions(max_batch_bytes=1)), io.BytesIO()
    large = converter.convert(lambda *_: 0, out.write, size_bytes=2**31)

    assert (empty, made.converted_bytes, made.refusal) == (b"", 0, None)
    assert large.refusal is not None
    assert large.refusal.kind == HazardKind.SEGMENT_TOO_LARGE
    assert _digest(b"") == RecordDigest(hashlib.sha256().hexdigest(), 0, None)


def test_a_file_that_shrinks_and_a_full_disk_are_errors() -> None:
    log = v0_message(0, None, b"a")

    def full(_: memoryview) -> None:
        raise OSError("no space left on device")

    with pytest.raises(FileChangedError):
        _CONVERTER.convert(reader_of(log), io.BytesIO().write, size_bytes=len(log) + 1)
    with pytest.raises(OSError, match="no space"):
        _CONVERTER.convert(reader_of(log), full, size_bytes=len(log))
