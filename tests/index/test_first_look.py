"""A first look at a segment: what it knows is what reading all of it says, or it does not know."""

import random
from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest

from kafka_segments.errors import CorruptIndexError
from kafka_segments.kafka.index.segment.first_look import FirstLook, FirstLooker
from kafka_segments.kafka.index.segment.index_ends import IndexFiles, RangedFile
from kafka_segments.kafka.index.segment.offset_index import encode_offset_index
from kafka_segments.kafka.index.segment.recovered_segment import SegmentRecovery
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.time_index import encode_time_index
from kafka_segments.kafka.index.segment.transaction_index import (
    AbortedTransaction,
    encode_transaction_index,
)
from support.logs.drawn_logs import (
    BASE,
    INTERVAL,
    Counted,
    Files,
    drawn_log,
    index_files,
    recovered,
)
from support.logs.strategies import gzip_wrapper, v1_message, v2_batch

LOOKER = FirstLooker(RecoveryOptions(index_interval_bytes=INTERVAL))
OF_LOOKS = {"checked_bytes", "first_epoch", "last_epoch", "leader_epochs"}
CLAIMS = [field.name for field in fields(FirstLook) if field.name not in OF_LOOKS]


def look(log: bytes, files: Files, *, is_active: bool = False) -> FirstLook:
    indexes = (None if data is None else Counted(data).file() for data in files.values())
    return LOOKER.look(
        Counted(log).file(), IndexFiles(*indexes), base_offset=BASE, is_active=is_active
    )


def claims(found: FirstLook | SegmentRecovery) -> dict[str, int]:
    return {name: getattr(found, name) for name in CLAIMS}


@pytest.fixture(scope="module")
def log() -> bytes:
    """A log of batches of one record each, whose timestamps rise."""
    return b"".join(
        v2_batch(BASE + n, [(1_000_000 + 10 * n, None, b"v" * 300)]) for n in range(400)
    )


@pytest.fixture(scope="module")
def files(log: bytes) -> Files:
    return index_files(recovered(log))


@pytest.mark.drawn
def test_what_is_known_of_sound_logs_is_what_reading_them_says(seed: int) -> None:
    draw = random.Random(seed)
    looked = 0
    for number in range(80):
        log = drawn_log(draw, 40 if number else 1_500)  # of which one piece of the index is a part
        found = recovered(log)
        if found.offset_entries is None or not len(found.offset_entries):
            continue
        assert claims(look(log, index_files(found))) == claims(found)
        looked += 1
    assert looked > 70


@pytest.mark.drawn
def test_index_files_of_other_intervals_tell_the_same(seed: int) -> None:
    draw = random.Random(seed)
    for interval in (0, 100, 5_000, 40_000):
        log = drawn_log(draw)
        found = recovered(log, interval)
        if len(found.offset_entries if found.offset_entries is not None else ()):
            assert claims(look(log, index_files(found))) == claims(recovered(log))


@pytest.mark.drawn
def test_an_active_segment_goes_on_behind_its_last_time_entry(seed: int) -> None:
    draw = random.Random(seed)
    looked = 0
    for _ in range(40):
        log = drawn_log(draw)
        found = recovered(log)
        files = index_files(found)
        assert found.offset_entries is not None
        assert found.time_entries is not None
        last = int(found.offset_entries[-1, 0]) if len(found.offset_entries) else 0
        written = found.time_entries[found.time_entries[:, 1] <= last]
        if not len(written):
            continue
        times = encode_time_index(written, base_offset=BASE)
        preallocated = {
            ".index": (files[".index"] or b"") + bytes(80_000),
            ".timeindex": times + bytes(120_000),
            ".txnindex": None,
        }
        assert claims(look(log, preallocated, is_active=True)) == claims(found)
        looked += 1
    assert looked > 25


def test_every_flipped_bit_of_an_index_is_noticed_or_changes_no_claim(
    log: bytes, files: Files
) -> None:
    true, noticed, flips = claims(recovered(log)), 0, 0
    for suffix, width in ((".index", 8), (".timeindex", 12)):
        data = files[suffix] or b""
        ends = range(8 * (len(data) - 2 * width), 8 * len(data))
        for bit in [*range(0, 8 * len(data), 37), *ends]:
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            flips += 1
            try:
                assert claims(look(log, {**files, suffix: bytes(flipped)})) == true, (suffix, bit)
            except CorruptIndexError:
                noticed += 1
    assert noticed > 0.9 * flips  # both indexes are small, so the order of all entries is seen


def test_indexes_cut_anywhere_are_noticed(log: bytes, files: Files) -> None:
    for suffix, width in ((".index", 8), (".timeindex", 12)):
        data = files[suffix] or b""
        for kept in range(0, len(data), 1 if len(data) < 500 else 7):
            cut = {**files, suffix: data[:kept]}
            if suffix == ".index" and kept and kept % width == 0:
                # Fewer entries lead to a longer tail, which is read; so the claims stay true.
                assert claims(look(log, cut)) == claims(recovered(log))
                continue
            with pytest.raises(CorruptIndexError):
                look(log, cut)


def test_a_time_index_that_lacks_the_greatest_timestamp_is_noticed_by_the_drawn_batch() -> None:
    times = [1_000 + n for n in range(100)] + [900_000 - n for n in range(300)]
    log = b"".join(v2_batch(BASE + n, [(t, None, b"v" * 300)]) for n, t in enumerate(times))
    found = recovered(log)
    files = index_files(found)
    assert claims(look(log, files)) == claims(found)
    assert found.time_entries is not None
    lacking = found.time_entries[found.time_entries[:, 0] < 900_000 - 300]

    cut = {**files, ".timeindex": encode_time_index(lacking, base_offset=BASE)}
    with pytest.raises(CorruptIndexError, match=r"a later batch has|as the greatest timestamp"):
        look(log, cut)


def _at(position: int, value: bytes) -> Callable[[bytes], bytes]:
    return lambda log: log[:position] + value + log[position + len(value) :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda log: log[:-1], "byte"),
        (lambda log: log[: len(log) // 2], "leads to byte"),
        (lambda log: log + bytes(5), "byte"),
        (lambda log: log + bytes(100_000), "byte"),
        (_at(100, b"\xff"), "no sound batch begins at byte 0"),
        (lambda log: log[:-100] + b"\xff" * 100, "checksum"),
    ],
    ids=["torn", "cut", "few zeros", "preallocated", "first batch", "last batch"],
)
def test_damage_in_what_is_read_makes_the_segment_be_read_as_a_whole(
    log: bytes, files: Files, change: Callable[[bytes], bytes], message: str
) -> None:
    with pytest.raises(CorruptIndexError, match=message):
        look(change(log), files)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({".index": None}, r"there is no \.index"),
        ({".timeindex": None}, r"there is no \.timeindex"),
        ({".index": b""}, r"the \.index has no entries"),
        ({".timeindex": b""}, r"the \.timeindex has no entries"),
        ({".index": bytes(800)}, r"the \.index has no entries"),
        ({".txnindex": bytes(33)}, "no multiple of 34"),
        ({".txnindex": b"\0\1" + bytes(32)}, "another version"),
        (
            {".txnindex": encode_transaction_index([AbortedTransaction(1, BASE, 9_999_999, 0)])},
            "ends below",
        ),
        (
            {
                ".txnindex": encode_transaction_index(
                    [AbortedTransaction(1, BASE, BASE + n, 0) for n in (9, 8)]
                )
            },
            "after one that ends at",
        ),
    ],
)
def test_what_no_broker_leaves_is_named(
    log: bytes, files: Files, changed: Files, message: str
) -> None:
    with pytest.raises(CorruptIndexError, match=message):
        look(log, {**files, **changed})


def test_zeros_are_expected_of_an_active_segment_alone(log: bytes, files: Files) -> None:
    padded = {**files, ".index": (files[".index"] or b"") + bytes(8_000)}

    assert claims(look(log, padded, is_active=True)) == claims(recovered(log))
    with pytest.raises(CorruptIndexError, match="zeros follow"):
        look(log, padded)


@pytest.mark.parametrize("place", ["first", "drawn", "last"])
def test_older_formats_are_read_as_a_whole(place: str) -> None:
    def batch(n: int, count: int) -> bytes:
        is_old = {"first": n == 0, "drawn": 0 < n < count - 1, "last": n == count - 1}[place]
        if is_old:
            inner = [v1_message(0, 1_000 + n, None, b"v" * 600)]
            return gzip_wrapper(inner, offset=BASE + n, timestamp=1_000 + n)
        return v2_batch(BASE + n, [(1_000 + n, None, b"v" * 600)])

    log = b"".join(batch(n, 50) for n in range(50))
    with pytest.raises(CorruptIndexError, match=r"format of v1|leads to"):
        look(log, index_files(recovered(log)))


def test_a_look_takes_few_reads_and_bytes() -> None:
    """Of a log of 64 MB whose batches all have the same size, made where they are read."""
    size, count = len(_kilobyte(0)), 66_000
    found = Counted(b"")

    def read(position: int, length: int) -> bytes:
        found.reads += 1
        found.bytes += length
        first, last = position // size, (position + length - 1) // size
        data = b"".join(_kilobyte(n) for n in range(first, min(last + 1, count)))
        return data[position - first * size :][:length]

    entries = np.array([(BASE + n, n * size) for n in range(4, count, 4)], dtype=np.int64)
    times = np.column_stack((1_000_000 + entries[:, 0] - BASE, entries[:, 0]))
    times = np.append(times, [[1_000_000 + count - 1, BASE + count - 1]], axis=0)
    indexes = [
        Counted(encode_offset_index(entries, base_offset=BASE)),
        Counted(encode_time_index(times, base_offset=BASE)),
    ]
    looked = LOOKER.look(
        RangedFile(size * count, read),
        IndexFiles(*(index.file() for index in indexes), None),
        base_offset=BASE,
        is_active=False,
    )

    assert size * count > 64 * 1024 * 1024
    assert (looked.next_offset, looked.max_timestamp) == (BASE + count, 1_000_000 + count - 1)
    assert sum(one.bytes for one in (found, *indexes)) < size * count / 1000
    assert sum(one.reads for one in (found, *indexes)) <= 6


def _kilobyte(n: int) -> bytes:
    return v2_batch(BASE + n, [(1_000_000 + n, None, bytes(1_000))])
