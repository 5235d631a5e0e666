"""What a load reads again of a log to rebuild the producer state, beside Kafka."""

import struct
from pathlib import Path

import pytest

from kafka_referee import Referee
from kafka_segments.index.log_recovery import RecoveryMode
from log_builds import differences
from mutated_logs import MutatedLog
from mutation_case import LogSettings
from strategies import (
    CONTROL,
    GZIP,
    TRANSACTIONAL,
    gzip_wrapper,
    v1_message,
    v2_batch,
)

NOW_MS = 1_700_000_000_000


def sent(offset: int, producer_id: int) -> bytes:
    return v2_batch(
        offset,
        [(NOW_MS, None, b"v")],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    )


def marker(offset: int, key: bytes) -> bytes:
    return v2_batch(
        offset,
        [(NOW_MS, key, struct.pack(">hi", 0, 0))],
        flags=CONTROL | TRANSACTIONAL,
        producer_id=7,
        producer_epoch=0,
    )


PLAIN = v1_message(0, NOW_MS, None, b"v")
UNREADABLE = v1_message(1, NOW_MS, None, b"no gzip", attributes=GZIP)
READABLE = gzip_wrapper([v1_message(0, NOW_MS, None, b"v")], offset=1, timestamp=NOW_MS)
ABORT = struct.pack(">hh", 0, 0)
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
}


@pytest.mark.parametrize("mode", [RecoveryMode.LOADER_UNCLEAN, RecoveryMode.LOADER_MISSING])
def test_what_is_read_again_makes_what_kafka_has(
    referee: Referee, memory_folder: Path, mode: RecoveryMode
) -> None:
    found = {
        name: [str(each) for each in differences(referee, drawn, memory_folder / name, mode)]
        for name, segments in LOGS.items()
        for drawn in [MutatedLog(0, 0, name, segments, LogSettings())]
    }

    assert found == {name: [] for name in LOGS}
