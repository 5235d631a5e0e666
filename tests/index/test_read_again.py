"""What a load reads again of a log to rebuild the producer state, beside Kafka."""

import struct
from pathlib import Path

import pytest

from kafka_segments.kafka.index.log.loading import RecoveryMode
from support.kafka.kafka_referee import Referee
from support.logs.log_builds import differences
from support.logs.mutated_logs import MutatedLog
from support.logs.mutation_case import DAY_MS, LogSettings, fit_crc, with_field
from support.logs.strategies import (
    CONTROL,
    GZIP,
    TRANSACTIONAL,
    gzip_wrapper,
    v1_message,
    v2_batch,
)

NOW_MS = 1_700_000_000_000


def sent(
    offset: int, producer_id: int, *, timestamp: int = NOW_MS, flags: int = 0, count: int = 1
) -> bytes:
    return v2_batch(
        offset,
        [(timestamp, None, b"v")] * count,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        flags=flags,
    )


def begun(offset: int, producer_id: int, *, count: int = 1) -> bytes:
    return sent(offset, producer_id, flags=TRANSACTIONAL, count=count)


def marker(offset: int, key: bytes, producer_id: int = 7) -> bytes:
    return v2_batch(
        offset,
        [(NOW_MS, key, struct.pack(">hi", 0, 0))],
        flags=CONTROL | TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
    )


def plain(offset: int) -> bytes:
    return v1_message(offset, NOW_MS, None, b"v")


def unreadable(offset: int) -> bytes:
    return v1_message(offset, NOW_MS, None, b"no gzip", attributes=GZIP)


def readable(offset: int) -> bytes:
    return gzip_wrapper([plain(0)], offset=offset, timestamp=NOW_MS)


def of_one_bucket(count: int) -> bytes:
    """Batches of producers that share one of 16 buckets, half of them one of 32; then offset 60."""
    return b"".join(sent(n, 7 + 16 * n) for n in range(count)) + sent(60, -1)


def of_many_buckets(count: int) -> bytes:
    """Batches of producers, two a bucket of 16 and one a bucket of 32; then offset 60."""
    return b"".join(sent(n, (n % 2) * 16 + n // 2) for n in range(count)) + sent(60, -1)


PLAIN, UNREADABLE, READABLE = plain(0), unreadable(1), readable(1)
ABORT = struct.pack(">hh", 0, 0)
EXPIRED = sent(0, 8, timestamp=NOW_MS - DAY_MS)
SHRINKING = EXPIRED + b"".join(sent(at, id) for at, id in enumerate([17, 1, *range(2, 12)], 1))
LOGS = {
    "an offset above the next segments": {0: sent(5, 7), 3: b"", 4: sent(9, 8)},
    "producers that share a bucket": {0: sent(200, 4839) + sent(250, 4855), 100: b""},
    "a wrapper at the end": {0: PLAIN + UNREADABLE},
    "a readable wrapper at the end": {0: PLAIN + READABLE},
    "a wrapper, then the next segment": {0: PLAIN + UNREADABLE, 2: v1_message(2, 1, None, b"v")},
    "a first wrapper, then the next segment": {0: UNREADABLE, 2: sent(2, 7)},
    "a first wrapper, then a producer": {0: UNREADABLE + sent(2, 7)},
    "a wrapper, then a producer": {0: PLAIN + UNREADABLE + sent(2, 7)},
    "a wrapper, a producer, the next segment": {0: UNREADABLE + sent(2, 7), 9: sent(9, 7)},
    "a marker that cannot be parsed": {0: sent(0, 7) + marker(1, b"")},
    "such a marker at an offset that was there": {0: sent(0, 7) + marker(0, b"")},
    "such a marker alone": {0: marker(0, b""), 1: sent(1, 7)},
    "such a marker after a sound one": {0: marker(0, ABORT) + marker(1, b""), 2: sent(2, 7)},
    "such a marker below what was there": {0: sent(5, 7) + marker(3, b""), 9: sent(9, 7)},
    "nine producers that share a bucket": {0: b"".join(sent(n, 7 + 16 * n) for n in range(9))},
    "eight producers that share a bucket": {0: b"".join(sent(n, 7 + 16 * n) for n in range(8))},
    "13 producers, one of which expires": {0: SHRINKING, 13: b"", 20: sent(20, 12)},
    "an abort, then a wrapper": {0: begun(0, 7) + marker(1, ABORT) + unreadable(2)},
    "an abort, then a negative magic": {
        0: fit_crc(with_field(begun(0, 7), "magic", -2)) + begun(1, 7) + marker(2, ABORT)
    },
    "a wrapper before a transaction that is open": {0: unreadable(1) + begun(2, 7)},
    "a readable wrapper before it": {0: readable(1) + begun(2, 7)},
    "a wrapper before a transaction that has ended": {
        0: unreadable(1) + begun(2, 7) + marker(3, ABORT)
    },
    "a wrapper behind where a transaction begins": {0: begun(0, 7) + unreadable(1) + sent(2, 8)},
    "a wrapper in the segment after it": {0: begun(0, 7), 4: unreadable(4) + sent(5, 8)},
    "a wrapper, then a segment below the end": {
        0: sent(0, 7) + sent(9, 7) + unreadable(10) + sent(17, 7),
        11: sent(20, 7),
    },
    "a wrapper that goes back, then segments": {
        0: PLAIN + plain(9) + unreadable(3),
        12: b"",
        13: plain(13),
    },
    "a transaction that is read again from its begin": {
        0: begun(1, 7) + begun(7, 8) + marker(11, ABORT) + begun(1, 7),
        12: begun(12, 8) + marker(13, ABORT) + marker(14, ABORT, 8),
    },
    "a wrapper, offsets that go back, then all is read": {
        0: plain(0) + unreadable(1) + plain(1) + sent(9, -1)
    },
    "a marker that is read again": {
        0: marker(6, ABORT) + begun(3, 8) + marker(5, ABORT, 8) + begun(0, 7),
        7: begun(7, 8) + marker(8, ABORT),
    },
    "a third transaction at the second's offset": {
        0: begun(0, 7) + marker(3, ABORT) + begun(5, 7) + marker(6, ABORT) + begun(5, 7),
        9: marker(9, ABORT),
    },
    "seven producers of a bucket that are read again": {0: of_one_bucket(7), 30: sent(61, 7)},
    "eight producers of a bucket that are read again": {0: of_one_bucket(8), 30: sent(61, 7)},
    "nine producers of a bucket that are read again": {0: of_one_bucket(9), 30: sent(61, 7)},
    "12 producers that are read again": {0: of_many_buckets(12), 30: sent(61, 7)},
    "13 producers that are read again": {0: of_many_buckets(13), 30: sent(61, 7)},
    "13 producers and one of them again": {
        0: of_many_buckets(13) + sent(20, 16) + sent(60, 1),
        30: sent(61, 7),
    },
    "14 producers that are read again": {0: of_many_buckets(14), 30: sent(61, 7)},
    "a transaction that begins below 0": {
        0: sent(3, 8) + begun(-2, 7, count=6),
        10: begun(10, 7) + sent(11, 8),
    },
    "a piece of a split segment with the name of a damaged one": {
        0: sent(2, 7) + sent(2**33, 7) + sent(2**32, 7),
        2**32: sent(2**32, 7)[:-1] + b"?",
    },
    "a piece with the name of a sound one": {
        0: sent(2, 7) + sent(2**33, 7) + sent(2**32, 7),
        2**32: begun(2**32, 8) + sent(2**32 + 1, 9),
        2**34: sent(2**34, 7),
    },
}


@pytest.mark.parametrize("mode", RecoveryMode)
def test_what_is_read_again_makes_what_kafka_has(
    referee: Referee, memory_folder: Path, mode: RecoveryMode
) -> None:
    found = {
        name: [str(each) for each in differences(referee, drawn, memory_folder / name, mode)]
        for name, segments in LOGS.items()
        for drawn in [MutatedLog(0, 0, name, segments, LogSettings())]
    }

    assert found == {name: [] for name in LOGS}


def test_a_wrapper_is_looked_up_from_the_log_start(referee: Referee, memory_folder: Path) -> None:
    log = {0: unreadable(3) + sent(5, 7) + sent(6, 8), 7: sent(7, 7) + begun(8, 9)}
    settings = LogSettings(index_interval_bytes=64, log_start_offset=4)
    drawn = MutatedLog(0, 0, "log start", log, settings)
    below = {0: sent(0, 7) + marker(1, b""), 3: b"", 4: sent(9, 7)}
    marked = MutatedLog(0, 0, "a marker below it", below, LogSettings(log_start_offset=8))

    assert not [
        str(each)
        for mode in RecoveryMode
        for each in (
            *differences(referee, drawn, memory_folder / mode, mode),
            *differences(referee, marked, memory_folder / mode, mode),
        )
        if not each.explanation
    ]


@pytest.mark.parametrize("mode", RecoveryMode)
def test_a_wrapper_that_a_cut_to_the_base_offset_meets_fails_the_log(
    referee: Referee, memory_folder: Path, mode: RecoveryMode
) -> None:
    later = v1_message(2, NOW_MS + 5, None, b"v")
    logs = {
        "it looks there": {0: unreadable(20) + plain(2) + plain(1), 22: plain(22)},
        "it leaves it": {0: unreadable(8) + plain(0) + later, 22: plain(22)},
        "it is in the segment before": {
            3: gzip_wrapper([plain(0), plain(5)], offset=3, timestamp=NOW_MS)
            + sent(11, -1)
            + sent(13, -1),
            12: plain(14),
        },
        "it leaves one that can be read": {0: readable(8) + plain(0) + later, 22: plain(22)},
    }
    found = {
        name: [str(each) for each in differences(referee, drawn, memory_folder / name, mode)]
        for name, segments in logs.items()
        for drawn in [MutatedLog(0, 0, name, segments, LogSettings(index_interval_bytes=0))]
    }

    assert found == {name: [] for name in logs}
