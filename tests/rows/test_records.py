"""Records out of batches of every format, and rows that say why where they cannot be had."""

import gzip
import struct
from collections.abc import Sequence
from pathlib import Path

import cramjam
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from kafka_segments.engine.rows.read_options import RECORDS, ReadOptions
from kafka_segments.engine.rows.record_rows import RecordRows
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.segments import decoding
from kafka_segments.files.segments.bounds import Bounds
from kafka_segments.files.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.kafka.wire import record_filling
from support.logs.log_reading import reader_of
from support.logs.strategies import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    Record,
    gzip_wrapper,
    legacy_entry,
    v0_message,
    v1_message,
    v2_batch,
    v2_record,
    varint,
)
from support.model.plain_decoder import XERIAL_HEADER, PlainRecord, plain_records, positions

SEGMENT = ListedSegment("/logs", "t-0", "00000000000000000000.log", "t", 0, 0, None, 0)
Row = dict[str, object]


def decode(
    log: bytes,
    *,
    columns: Sequence[str] = (),
    max_batch_bytes: int = 1_000_000,
    bounds: Bounds | None = None,
) -> list[Row]:
    """Decode all records of a log, damage of the log itself aside."""
    options = ReadOptions(("/logs",), RECORDS, tuple(columns))
    schema = to_arrow_schema(options.schema(), timezone="UTC")
    bounds = bounds or Bounds()
    rows = RecordRows(schema, max_batch_bytes=max_batch_bytes, bounds=bounds)
    reader = ChunkReader(
        ChunkOptions(needs_body=True, max_batch_bytes=max_batch_bytes, bounds=bounds)
    )

    found = [
        batch
        for chunk in reader.read(reader_of(log), size_bytes=len(log))
        for batch in rows.rows(chunk, SEGMENT)
    ]
    table = pa.Table.from_batches(found, schema=schema)
    table.validate(full=True)
    return table.to_pylist()


def plain(row: Row) -> PlainRecord:
    """Give a row as the plain decoder gives a record."""
    headers = [(header["key"], header["value"]) for header in row["headers"]]  # type: ignore[attr-defined]
    names = ("batch_position", "offset", "timestamp_ms", "key", "value")
    return PlainRecord(*(row[name] for name in names), headers)  # type: ignore[arg-type]


def error_of(log: bytes, **options: int) -> str:
    """Decode a log of one batch that cannot be; check the row that stands for it."""
    (row,) = decode(log, **options)
    assert (row["key"], row["value"], row["headers"]) == (None, None, None)
    assert isinstance(row["error"], str)
    return row["error"]


CODEC_NAMES = ("gzip: ", "snappy: ", "lz4: ", "zstd: ")


def compressed(codec: int, data: bytes) -> bytes:
    """Compress as a client does; snappy bare."""
    if codec == 1:
        return gzip.compress(data, mtime=0)
    if codec == 2:
        return bytes(cramjam.snappy.compress_raw(data))
    if codec == 3:
        frame = cramjam.lz4.Compressor(block_linked=False)
        frame.compress(data)
        return bytes(frame.finish())
    return bytes(cramjam.zstd.compress(data))


def xerial(*blocks: bytes) -> bytes:
    """Frame snappy blocks as snappy-java does."""
    packed = [bytes(cramjam.snappy.compress_raw(block)) for block in blocks]
    return XERIAL_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in packed)


def lz4_as_kafka_wrote_it_for_v0(data: bytes) -> bytes:
    """Break the checksum of a frame's header."""
    frame = bytearray(compressed(3, data))
    frame[6] ^= 0xFF
    return bytes(frame)


nullable_bytes = st.one_of(st.none(), st.binary(max_size=40), st.just(bytes(300)))
int64s = st.one_of(st.integers(0, 10**13), st.integers(-(2**63), 2**63 - 1))
headers = st.lists(st.tuples(st.text(max_size=6), nullable_bytes), max_size=3)


@st.composite
def _v2_batches(draw: st.DrawFn) -> bytes:
    count = draw(st.integers(0, 6))
    deltas = draw(
        st.lists(st.integers(-(2**31), 2**31 - 1), min_size=count, max_size=count, unique=True)
    )
    payload = b"".join(
        v2_record(
            timestamp_delta=draw(st.integers(-(2**40), 2**40)),
            offset_delta=delta,
            key=draw(nullable_bytes),
            value=draw(nullable_bytes),
            headers=draw(headers),
        )
        for delta in deltas
    )
    codec = draw(st.integers(0, 4)) if count else 0
    return v2_batch(
        draw(st.integers(2**32, 2**62)),
        [],
        payload=compressed(codec, payload) if codec else payload,
        codec=codec,
        flags=draw(st.sampled_from([0, LOG_APPEND_TIME, DELETE_HORIZON, CONTROL])),
        base_timestamp=draw(st.integers(-1, 2**42)),
        max_timestamp=draw(int64s),
        record_count=count,
    )


@st.composite
def _message_sets(draw: st.DrawFn) -> bytes:
    magic, codec = draw(st.integers(0, 1)), draw(st.integers(0, 3))
    count, base_offset = draw(st.integers(1, 5)), draw(st.integers(1, 2**40))
    attributes = draw(st.sampled_from([0, LOG_APPEND_TIME])) if magic else 0
    messages = []
    for i in range(count):
        key, value, offset = draw(nullable_bytes), draw(nullable_bytes), 2 * i
        if magic == 0:
            messages.append(v0_message(base_offset + offset, key, value))
        else:
            at = offset if codec else base_offset + offset
            messages.append(v1_message(at, draw(int64s), key, value))
    if not codec:
        return b"".join(messages)
    pack = lz4_as_kafka_wrote_it_for_v0 if (magic, codec) == (0, 3) else None
    data = b"".join(messages)
    value = pack(data) if pack else compressed(codec, data)
    last = base_offset + 2 * (count - 1)
    if magic == 0:
        return v0_message(last, None, value, attributes=codec)
    return v1_message(last, draw(int64s), None, value, attributes=codec | attributes)


@pytest.mark.slow
@given(st.lists(st.one_of(_v2_batches(), _message_sets()), max_size=6).map(b"".join))
@example(b"")
def test_records_are_what_a_plain_decoder_reads(log: bytes) -> None:
    assert [plain(row) for row in decode(log)] == list(plain_records(log))


def test_every_golden_segment_is_read_as_by_a_plain_decoder(synthetic: Path, broker: Path) -> None:
    logs = [*synthetic.glob("*/t-0/*.log"), *broker.glob("logs/*/*.log")]
    count = 0
    for path in logs:
        log = path.read_bytes()
        rows = decode(log)
        sound_bytes = 0
        for row in rows:
            assert row["error"] is None, path
            sound_bytes = max(sound_bytes, int(str(row["batch_position"])))
        ends = dict(positions(log))
        sound = log[: ends[sound_bytes]] if rows else b""
        assert [plain(row) for row in rows] == list(plain_records(sound)), path
        count += len(rows)

    assert len(logs) > 100
    assert count > 50_000


@given(value=st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1])))
def test_a_timestamp_delta_may_be_any_int64(value: int) -> None:
    record = v2_record(timestamp_delta=value, offset_delta=0, key=None, value=b"x")
    log = v2_batch(0, [], base_timestamp=0, payload=record, record_count=1)

    assert decode(log)[0]["timestamp_ms"] == value


def test_key_value_and_headers_tell_empty_from_null() -> None:
    log = v2_batch(
        0,
        [(1, b"", None), (1, None, b"")],
        headers=[("", None), ("a", b""), ("a", b"\xff")],
    )

    rows = decode(log)

    assert [(row["key"], row["value"]) for row in rows] == [(b"", None), (None, b"")]
    assert rows[0]["headers"] == [
        {"key": "", "value": None},
        {"key": "a", "value": b""},
        {"key": "a", "value": b"\xff"},
    ]


def test_a_header_key_that_is_no_utf_8_gets_replacement_characters() -> None:
    record = b"\x00\x00\x00\x01\x01\x02\x06a\xffb\x01"
    log = v2_batch(0, [], payload=varint(len(record)) + record, record_count=1)

    assert decode(log)[0]["headers"] == [{"key": "a\ufffdb", "value": None}]


def test_a_row_has_the_fields_of_its_batch() -> None:
    log = v2_batch(
        100,
        [(5, b"k", b"v"), (7, b"k", b"v")],
        leader_epoch=3,
        codec=1,
        flags=0x10,
        producer_id=4711,
        producer_epoch=2,
        base_sequence=2**31 - 1,
    )

    first, second = decode(log)

    assert first == {
        "path": "/logs/t-0/00000000000000000000.log",
        "topic": "t",
        "partition": 0,
        "segment_base_offset": 0,
        "batch_position": 0,
        "offset": 100,
        "timestamp_ms": 5,
        "timestamp_type": "CreateTime",
        "key": b"k",
        "value": b"v",
        "headers": [],
        "producer_id": 4711,
        "producer_epoch": 2,
        "sequence": 2**31 - 1,
        "partition_leader_epoch": 3,
        "is_transactional": True,
        "is_control": False,
        "magic": 2,
        "codec": "gzip",
        "error": None,
    }
    assert second["sequence"] == 0  # after 2147483647


def test_a_record_without_a_producer_has_no_sequence() -> None:
    assert decode(v2_batch(0, [(1, None, b"a")] * 2))[1]["sequence"] == -1


def test_a_legacy_row_has_no_v2_fields() -> None:
    rows = decode(v0_message(1, None, b"a") + v1_message(2, 5, None, b"a", attributes=0x08))

    types = [row["timestamp_type"] for row in rows]
    v2_only = ("producer_id", "sequence", "partition_leader_epoch", "is_control")
    assert types == ["NoTimestampType", "LogAppendTime"]
    assert [row[name] for row in rows for name in v2_only] == [None] * 8
    assert [row["headers"] for row in rows] == [[], []]


def test_an_old_librdkafkas_wrapper_at_offset_0_holds_absolute_offsets() -> None:
    inner = [v1_message(offset, 5, None, b"a") for offset in (0, 1, 2)]

    rows = decode(gzip_wrapper(inner, offset=0, timestamp=5))

    assert [row["offset"] for row in rows] == [0, 1, 2]


def test_an_inner_message_v0_in_a_wrapper_v1_has_no_timestamp() -> None:
    inner = v0_message(0, None, b"a") + v1_message(1, 5, None, b"b")
    log = v1_message(11, 99, None, compressed(1, inner), attributes=1 | LOG_APPEND_TIME)

    rows = decode(log)

    assert [(row["offset"], row["timestamp_ms"]) for row in rows] == [(10, -1), (11, 99)]


def test_snappy_comes_bare_in_blocks_or_as_several_streams() -> None:
    records: list[Record] = [(1, None, b"a" * 100), (1, None, b"b" * 100)]
    payload = v2_batch(0, records)[61:]
    half = len(payload) // 2
    written = [
        compressed(2, payload),
        xerial(payload),
        xerial(payload[:half], b"", payload[half:]),
        xerial(payload[:half]) + xerial(payload[half:]),
    ]

    found = [
        [row["value"] for row in decode(v2_batch(0, records, codec=2, payload=data))]
        for data in written
    ]

    assert found == [[b"a" * 100, b"b" * 100]] * 4


RECORD = v2_record(timestamp_delta=0, offset_delta=0, key=b"k", value=b"v", headers=[("h", b"x")])


def _record(body: bytes, *, length: int | None = None) -> bytes:
    return varint(len(body) if length is None else length) + body


@pytest.mark.parametrize(
    ("payload", "count", "error"),
    [
        (RECORD, -1, "record count is -1, it cannot be negative (at byte 0 of the records)"),
        (RECORD, 2, "record count is 2, the bytes hold at most 1 (at byte 0 of the records)"),
        (
            RECORD * 2,
            2**31 - 1,
            "record count is 2147483647, the bytes hold at most 3 (at byte 0 of the records)",
        ),
        (RECORD * 2, 3, "a varint reaches past the end (at byte 26 of the records)"),
        (
            RECORD * 2,
            1,
            "13 bytes are left after the last of 1 records (at byte 13 of the records)",
        ),
        (
            RECORD + RECORD[:-1],
            2,
            "a record says 12 bytes, 11 are left (at byte 13 of the records)",
        ),
        (
            _record(bytes(6), length=-3),
            1,
            "record length is -3, it cannot be negative (at byte 0 of the records)",
        ),
        (
            b"\x00" * 7,
            1,
            "a record of length 0 has no room for its attributes (at byte 0 of the records)",
        ),
        (
            _record(b"\x00\x00\x00" + varint(100) + b"k\x01\x00"),
            1,
            "a key says 100 bytes, 3 are left in its record (at byte 4 of the records)",
        ),
        (
            _record(b"\x00\x00\x00\x01" + varint(2**31 - 1) + b"v\x00"),
            1,
            "a value says 2147483647 bytes, 2 are left in its record (at byte 5 of the records)",
        ),
        (
            _record(b"\x00\x00\x00\x01\x01" + varint(-1)),
            1,
            "header count is -1, it cannot be negative (at byte 6 of the records)",
        ),
        (
            _record(b"\x00\x00\x00\x01\x01" + varint(9) + b"\x00\x00\x00"),
            1,
            "header count is 9, the record has room for 1 (at byte 6 of the records)",
        ),
        (
            _record(b"\x00\x00\x00\x01\x01\x02\x01\x00"),
            1,
            "the length of a header's key is -1, it cannot be negative (at byte 7 of the records)",
        ),
        (
            _record(b"\x00\x00\x00\x01\x01\x02\x02a" + varint(50)),
            1,
            "a header says 50 bytes, 0 are left in its record (at byte 9 of the records)",
        ),
        (
            _record(b"\x00\x00\x00\x01\x01\x00\xaa"),
            1,
            "a record says 7 bytes, its fields take 6 (at byte 0 of the records)",
        ),
        (
            _record(b"\x00\x00" + b"\x80" * 5 + b"\x00\x01\x01\x00"),
            1,
            "a varint has no end after 5 bytes (at byte 3 of the records)",
        ),
        (
            _record(b"\x00" + b"\x80" * 10 + b"\x00\x00\x01\x01\x00"),
            1,
            "a varint has no end after 10 bytes (at byte 2 of the records)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_records_that_are_not_what_they_say_are_one_row(
    payload: bytes, count: int, error: str
) -> None:
    assert error_of(v2_batch(0, [], payload=payload, record_count=count)) == error


def test_any_negative_length_of_a_key_or_value_is_null() -> None:
    record = _record(b"\x00\x00\x00" + varint(-5) + varint(-(2**31)) + b"\x00")
    (row,) = decode(v2_batch(0, [], payload=record, record_count=1))

    assert (row["key"], row["value"], row["error"]) == (None, None, None)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_what_a_codec_cannot_read_is_one_row(codec: int) -> None:
    for payload in (b"", b"garbage" * 9, compressed(codec, RECORD * 50)[:-7]):
        error = error_of(v2_batch(0, [], codec=codec, payload=payload, record_count=50))

        assert error.startswith((*CODEC_NAMES, "record count is 50, the bytes hold"))


def test_a_compressed_batch_says_where_its_records_are_wrong() -> None:
    payload = compressed(4, RECORD + b"junk")

    assert error_of(v2_batch(0, [], codec=4, payload=payload, record_count=1)) == (
        "4 bytes are left after the last of 1 records (at byte 13 of the decompressed records)"
    )


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_one_row(codec: int) -> None:
    log = v2_batch(0, [], codec=codec, payload=RECORD, record_count=1)

    (row,) = decode(log)

    assert (row["codec"], row["error"]) == (
        f"unknown-{codec}",
        f"codec is {codec}, 0 to 4 are known",
    )


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_bomb_takes_no_more_than_the_limit(codec: int) -> None:
    record = v2_record(timestamp_delta=0, offset_delta=0, key=None, value=bytes(30_000_000))
    payload = xerial(record) if codec == 2 else compressed(codec, record)
    log = v2_batch(0, [], codec=codec, payload=payload, record_count=1)
    most = len(log) + 1_000_000

    limit = f"decompresses to more than {most} bytes, the most that is read"
    assert error_of(log, max_batch_bytes=most) == limit
    assert len(decode(log, max_batch_bytes=len(record))) == 1


def test_a_snappy_block_that_claims_4_gib_takes_no_memory() -> None:
    log = v2_batch(0, [], codec=2, payload=b"\xff\xff\xff\xff\x0f" + bytes(20), record_count=1)

    assert error_of(log) == "snappy: 25 bytes cannot hold 4294967295"


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (XERIAL_HEADER + b"\x00\x00\x00\xff", "snappy: a block says 255 bytes, 0 are left"),
        (XERIAL_HEADER + b"\xff\xff\xff\xff", "snappy: a block says -1 bytes, 0 are left"),
    ],
)
def test_snappy_framing_is_not_trusted(payload: bytes, error: str) -> None:
    assert error_of(v2_batch(0, [], codec=2, payload=payload, record_count=1)) == error


def _wrapper(inner: bytes, *, offset: int = 10) -> bytes:
    return v1_message(offset, 5, None, compressed(1, inner), attributes=1)


MESSAGE = v1_message(0, 5, b"k", b"v")


@pytest.mark.parametrize(
    ("log", "error"),
    [
        (
            _wrapper(b""),
            "the message set is empty (at byte 0 of the decompressed records)",
        ),
        (
            _wrapper(MESSAGE + MESSAGE[:-1]),
            "a record says 36 bytes, 35 are left (at byte 36 of the decompressed records)",
        ),
        (
            _wrapper(MESSAGE[:20]),
            "a message has 20 bytes, the least is 26 (at byte 0 of the decompressed records)",
        ),
        (
            _wrapper(v1_message(0, 5, None, b"x", attributes=2)),
            "an inner message is compressed, codec 2 (at byte 0 of the decompressed records)",
        ),
        (
            _wrapper(v1_message(11, 5, None, b"x")),
            "offset 10 is below its last inner message's 11"
            " (at byte 0 of the decompressed records)",
        ),
        (
            _wrapper(b"\x07" * 60),
            "a record says 117901075 bytes, 60 are left (at byte 0 of the decompressed records)",
        ),
        (v1_message(10, 5, None, None, attributes=1), "a compressed message has no value"),
        (
            v1_message(10, 5, None, b"x", attributes=4),
            "codec zstd in a message of magic 1",
        ),
        (
            legacy_entry(1, b"\x00\x00" + struct.pack(">i", 50) + bytes(8)),
            "a key says 50 bytes, 4 are left in its record (at byte 22 of the records)",
        ),
        (
            legacy_entry(1, b"\x00\x00" + struct.pack(">ii", -1, 50) + bytes(8)),
            "a value says 50 bytes, 8 are left in its record (at byte 26 of the records)",
        ),
        (
            legacy_entry(1, b"\x00\x00" + struct.pack(">ii", -1, -1) + bytes(8)),
            "a record says 34 bytes, its fields take 26 (at byte 0 of the records)",
        ),
        (
            legacy_entry(1, b"\x01\x00" + bytes(12)),
            "a message has 30 bytes, the least is 34 (at byte 0 of the records)",
        ),
        (
            legacy_entry(1, b"\xff\x00" + bytes(16)),
            "magic is -1, 0 or 1 expected (at byte 0 of the records)",
        ),
        (
            legacy_entry(1, b"\x00\x01" + struct.pack(">i", 50) + bytes(8)),
            "a key says 50 bytes, 8 are left",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_messages_that_are_not_what_they_say_are_one_row(log: bytes, error: str) -> None:
    assert error_of(log) == error


def test_the_lz4_header_checksum_is_verified_in_v1_and_not_in_v0() -> None:
    data = lz4_as_kafka_wrote_it_for_v0(v0_message(7, None, b"x"))

    assert decode(v0_message(7, None, data, attributes=3))[0]["value"] == b"x"
    assert error_of(v1_message(7, 5, None, data, attributes=3)).startswith("lz4: ")


def test_the_checksum_of_an_lz4_frames_content_is_passed_over_as_kafka_does() -> None:
    frame = compressed(3, v1_message(0, 5, None, b"x" * 200))
    torn = frame[:-4]
    wrong = torn + b"\xde\xad\xbe\xef"

    assert decode(v1_message(0, 5, None, wrong, attributes=3))[0]["value"] == b"x" * 200
    assert error_of(v1_message(0, 5, None, torn, attributes=3)).startswith("lz4: ")


def test_a_batch_that_cannot_be_decoded_does_not_stop_the_next() -> None:
    good = [v2_batch(offset, [(offset, None, b"v")] * 2) for offset in (0, 20)]
    bad = v2_batch(10, [(5, b"k", b"v"), (6, b"k", b"v")], record_count=1)
    worse = v2_batch(15, [(7, b"k", b"v")], codec=3, payload=b"x")

    rows = decode(good[0] + bad + worse + good[1])

    assert [(row["offset"], row["timestamp_ms"], row["error"] is None) for row in rows] == [
        (0, 0, True),
        (1, 0, True),
        (10, 6, False),
        (15, 7, False),
        (20, 20, True),
        (21, 20, True),
    ]


@given(
    batch=st.one_of(_v2_batches(), _message_sets()),
    place=st.floats(0, 1, exclude_max=True),
    bit=st.integers(0, 7),
)
def test_flipped_bits_give_records_or_one_row_each_batch(
    batch: bytes, place: float, bit: int
) -> None:
    damaged = bytearray(batch)
    damaged[int(place * len(batch))] ^= 1 << bit
    reader = ChunkReader(ChunkOptions(needs_body=True, check_crc=False, max_batch_bytes=1_000_000))
    schema = to_arrow_schema(ReadOptions((), RECORDS).schema())
    rows = RecordRows(schema, max_batch_bytes=1_000_000)

    def read_into(position: int, view: memoryview) -> int:
        piece = damaged[position : position + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    for chunk in reader.read(read_into, size_bytes=len(damaged)):
        table = pa.Table.from_batches(list(rows.rows(chunk, SEGMENT)), schema=schema)
        table.validate(full=True)
        errors = [row for row in table.to_pylist() if row["error"] is not None]
        assert all(row["key"] is None for row in errors)
        assert len(errors) <= chunk.batches.shape[1]


@pytest.mark.parametrize("limits", [(1, 64, 1), (2, 1_000, 2), (3, 70, 100)])
def test_rows_are_the_same_however_small_the_columns_are(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int, int]
) -> None:
    some_headers = [("h", b"1"), ("h", None), ("i", bytes(90))]
    log = (
        v2_batch(0, [(1, b"a" * 50, b"b" * 50)] * 4, headers=some_headers)
        + v2_batch(10, [(1, None, b"b" * 200)] * 2, codec=1)
        + v2_batch(15, [(1, None, b"b")] * 2, record_count=1)
        + v2_batch(16, [(1, None, b"b")], codec=4, payload=b"garbage")
        + v1_message(20, 5, b"k" * 99, b"v" * 99)
        + gzip_wrapper(
            [v1_message(i, 5, b"k", b"v" * 99) for i in range(3)], offset=23, timestamp=5
        )
    )
    expected = decode(log)

    rows, data_bytes, headers = limits
    monkeypatch.setattr(record_filling, "_MOST_ROWS", rows)
    monkeypatch.setattr(decoding, "_DATA_BYTES", data_bytes)
    monkeypatch.setattr(decoding, "_MOST_HEADERS", headers)

    assert decode(log) == expected
    assert len(expected) == 12


def test_the_columns_asked_for_do_not_change_what_is_an_error() -> None:
    bad_header = _record(b"\x00\x00\x00\x01\x01\x02\x01\x00")
    log = v2_batch(0, [(1, b"k", b"v")]) + v2_batch(1, [], payload=bad_header, record_count=1)
    expected = [(row["offset"], row["error"]) for row in decode(log)]

    for columns in (("offset", "error"), ("offset", "error", "value"), ("key", "error", "offset")):
        rows = decode(log, columns=columns)

        assert [set(row) for row in rows] == [set(columns)] * 2
        assert [(row["offset"], row["error"]) for row in rows] == expected


def test_a_batch_above_the_limit_is_one_row() -> None:
    log = v2_batch(3, [(9, None, bytes(5_000_000))])

    assert error_of(log) == f"the batch has {len(log)} bytes, at most 1000000 are read"
    assert decode(log)[0]["offset"] == 3


@given(
    log=st.lists(st.one_of(_v2_batches(), _message_sets()), max_size=4).map(b"".join),
    data=st.data(),
)
def test_bounds_leave_out_what_lies_outside_of_them(log: bytes, data: st.DataObject) -> None:
    records = [plain(row) for row in decode(log)]
    offsets = st.sampled_from([record.offset for record in records] or [0])
    timestamps = st.sampled_from([record.timestamp for record in records] or [0])
    low, high = sorted((data.draw(offsets), data.draw(offsets)))
    # A batch's own bounds are trusted, and these batches are drawn without regard to them.
    bounds = Bounds(low_offset=low, high_offset=high)
    greatest = data.draw(timestamps)

    found = [plain(row) for row in decode(log, bounds=bounds)]
    until = [plain(row) for row in decode(log, bounds=Bounds(high_timestamp=greatest))]

    within = [record for record in records if low <= record.offset <= high]
    assert [record for record in within if record not in found] == [
        record for record in within if _is_outside_its_batch(log, record, bounds)
    ]
    assert found == [record for record in within if record in found]
    assert all(record.timestamp <= greatest for record in until)


def _is_outside_its_batch(log: bytes, record: PlainRecord, bounds: Bounds) -> bool:
    """Tell whether the header of a record's batch hides it from the bounds."""
    first, magic = struct.unpack_from(">q8xb", log, record.batch_position)
    last = first
    if magic >= 2:
        last += struct.unpack_from(">i", log, record.batch_position + 23)[0]
    is_wrapper = magic < 2 and log[record.batch_position + 17] & 7 != 0
    return last < bounds.low_offset or (first > bounds.high_offset and not is_wrapper)


def test_a_batch_that_cannot_be_decoded_is_a_row_whatever_the_bounds() -> None:
    bad = v2_batch(10, [(5, b"k", b"v")] * 3, codec=4, payload=b"junk")
    log = bad + v2_batch(13, [(5, b"k", b"v")] * 3)

    rows = decode(log, bounds=Bounds(low_offset=12, high_offset=13))

    assert [(row["offset"], row["error"] is None) for row in rows] == [(10, False), (13, True)]
