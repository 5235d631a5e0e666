"""Where a segment's whole batches end, and their digest, in one pass."""

import random
from pathlib import Path

import pytest

from kafka_segments.files.segments import chunks
from kafka_segments.files.segments.whole_batches import WholeBatches, WholeBatchReader
from kafka_segments.files.storage.files import place
from support.logs.group_logs import batch, commit_key, commit_value
from support.logs.strategies import crc32c


def _batches(count: int) -> list[bytes]:
    return [
        batch(offset, (commit_key("g" * (offset % 50)), commit_value(offset)))
        for offset in range(count)
    ]


def _read(
    file: Path, *, start: int | None = None, crc: int | None = None, size: int | None = None
) -> WholeBatches:
    size_bytes = file.stat().st_size if size is None else size
    reader = WholeBatchReader()
    return reader.read(place(str(file)), size_bytes=size_bytes, start=start, start_crc32c=crc)


@pytest.mark.parametrize("chunk_bytes", [512, chunks._CHUNK_BYTES])
def test_the_digest_is_of_whole_batches_and_of_those_up_to_a_position(
    tmp_path: Path, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(chunks, "_CHUNK_BYTES", chunk_bytes)
    written = _batches(40)
    data, draw = b"".join(written), random.Random(seed)
    file = tmp_path / f"{0:020d}.log"
    tails = {"torn": written[0][:-1], "short": b"\x00" * 7, "zeros": b"\x00" * 999, "none": b""}
    for tail in tails.values():
        file.write_bytes(data + tail)
        for start in (0, len(written[0]), draw.randrange(len(data)), len(data)):
            crc = crc32c(data[:start])
            assert _read(file, start=start, crc=crc) == (len(data), crc32c(data), True)
            assert not _read(file, start=start, crc=crc ^ 1).has_start
        assert not _read(file, start=len(data) + 1, crc=crc32c(data)).has_start
        assert _read(file) == (len(data), crc32c(data), False)


def test_only_the_bytes_count_that_were_listed(tmp_path: Path) -> None:
    first, second = _batches(2)
    file = tmp_path / f"{0:020d}.log"
    file.write_bytes(first + second)

    assert _read(file, size=len(first)) == (len(first), crc32c(first), False)
    assert _read(file, size=len(first) + 20).end == len(first)
    assert _read(file, size=10_000).end == len(first + second)


def test_a_damaged_batch_ends_them_and_nothing_is_said_of_what_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _batches(2)
    file = tmp_path / f"{0:020d}.log"
    file.write_bytes(first + second[:-1] + bytes([second[-1] ^ 1]))

    assert _read(file) == (len(first), crc32c(first), False)
    assert _read(tmp_path / "gone.log", size=9) == (None, None, False)
    monkeypatch.setattr(chunks, "_CHUNK_BYTES", 64)
    reader = WholeBatchReader(most_batch_bytes=100)
    found = reader.read(place(str(file)), size_bytes=900, start=0, start_crc32c=0)
    assert len(first) > 100
    assert found == (None, None, False)
