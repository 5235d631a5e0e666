"""Which compressed bytes are read and which refused: as Kafka's own streams decide."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kafka_segments.kafka.codecs.codecs import Decompressor
from kafka_segments.kafka.codecs.streams import DecompressionError
from kafka_segments.kafka.wire.failures import FAILURE_SLOTS, OK
from kafka_segments.kafka.wire.records import check_records
from kafka_segments.kafka.wire.wrappers import first_offset
from support.kafka.kafka_referee import Referee, RefereeError
from support.logs.framings import LZ4, drawn_framing, framings, gzip_member, lz4_frame
from support.logs.strategies import v0_message, v1_message, v2_batch, v2_record

COUNT = 6
DRAWN = 300
CODEC, HEADER_BYTES = 0x07, 61


def _content(magic: int, value_bytes: int, rng: random.Random) -> bytes:
    """Give the records of a batch v2, or the inner messages of a wrapper."""
    values = [rng.randbytes(value_bytes) for _ in range(COUNT)]
    if magic == 2:
        return b"".join(
            v2_record(timestamp_delta=0, offset_delta=delta, key=None, value=value)
            for delta, value in enumerate(values)
        )
    if magic == 1:
        return b"".join(v1_message(at, 1, None, value) for at, value in enumerate(values))
    return b"".join(v0_message(30 + at, None, value) for at, value in enumerate(values))


def _batch(magic: int, codec: int, packed: bytes) -> bytes:
    if magic == 2:
        return v2_batch(30, [(1, None, b"")] * COUNT, codec=codec, payload=packed, base_timestamp=1)
    if magic == 1:
        return v1_message(29 + COUNT, 1, None, packed, attributes=codec)
    return v0_message(29 + COUNT, None, packed, attributes=codec)


def _first_read(batch: bytes) -> int | None:
    """Give the first offset of a batch; None: it is refused."""
    data = np.frombuffer(batch, dtype=np.uint8)
    try:
        if batch[16] < 2:
            return first_offset(lambda at, length: batch[at : at + length], len(batch))
        found = Decompressor(2**24).decompress(batch[22] & CODEC, data[HEADER_BYTES:], magic=2)
    except DecompressionError:
        return None
    failure = np.zeros(FAILURE_SLOTS, dtype=np.int64)
    return 30 if check_records(found, 0, len(found), COUNT, failure) == OK else None


def _first_read_by_kafka(referee: Referee, folder: Path, batch: bytes) -> int | None:
    log, lines = folder / f"{30:020d}.log", folder / "lines"
    log.write_bytes(batch)
    try:
        referee.records(log, lines)
    except RefereeError:
        return None
    return int(lines.read_text().split()[0])


def _differing(
    referee: Referee, folder: Path, batches: Iterator[tuple[str, bytes]]
) -> tuple[int, dict[str, str]]:
    """Compare batches by name; give how many Kafka reads, and those it takes otherwise than we."""
    read, differ = 0, {}
    for name, batch in batches:
        mine, kafkas = _first_read(batch), _first_read_by_kafka(referee, folder, batch)
        read += kafkas is not None
        if mine != kafkas:
            differ[name] = f"{mine}, Kafka's {kafkas}"
    return read, differ


@pytest.mark.parametrize("value_bytes", [20, 3000])  # below and above the buffer of lz4, snappy
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_every_framing_is_read_or_refused_as_kafka_does(
    referee: Referee, tmp_path: Path, magic: int, value_bytes: int
) -> None:
    content = _content(magic, value_bytes, random.Random(magic))
    table = framings(content)
    batches = ((name, _batch(magic, codec, made)) for name, (codec, made) in table.items())

    read, differ = _differing(referee, tmp_path, batches)

    assert not differ
    assert len(table) > 140
    assert 30 < read < len(table) - 30


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_drawn_framings_are_read_or_refused_as_kafka_does(
    referee: Referee, tmp_path: Path, seed: int, magic: int
) -> None:
    rng = random.Random(f"{seed} {magic}")

    def drawn() -> Iterator[tuple[str, bytes]]:
        for number in range(DRAWN):
            content = _content(magic, rng.choice([0, 20, 300, 2040, 3000]), rng)
            yield str(number), _batch(magic, *drawn_framing(rng, content))

    read, differ = _differing(referee, tmp_path, drawn())

    assert not differ
    assert 30 < read < DRAWN - 30


@pytest.mark.slow
def test_a_set_of_any_size_is_read_through_a_small_window() -> None:
    inner = v1_message(0, 1, None, bytes(2**27)) * 3  # 384 MiB of zeros, 390 KB compressed
    wrapper = v1_message(10, 1, None, gzip_member(inner), attributes=1)

    assert first_offset(lambda at, length: wrapper[at : at + length], len(wrapper)) == 10


def test_a_batch_beyond_the_limit_of_a_reader_says_whose_limit_it_is() -> None:
    frame = np.frombuffer(lz4_frame([(True, bytes(60_000))]), dtype=np.uint8)

    with pytest.raises(DecompressionError, match="more than 50000 bytes, the most that is read"):
        Decompressor(50_000).decompress(LZ4, frame, magic=2)
