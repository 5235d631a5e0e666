"""``cleaner``: which transactions are open in a log of which segments are missing."""

import shutil
import struct
from pathlib import Path

import pytest

from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.kafka.broker_rules.cleaner.log_cleaner import CleanedLog, CleanerConfig
from kafka_segments.kafka.index.log.producer_state import ProducerEntry, ProducerState
from kafka_segments.kafka.index.log.snapshots import encode_snapshot
from kafka_segments.verbs.find.cleaner.log_facts import NotKnownError, read_log
from support.logs.sound_logs import CLOCK_MS, COMMIT, Producer, marker
from support.logs.strategies import TRANSACTIONAL, v2_batch

PRODUCER = 7


def _plain(offset: int) -> bytes:
    return v2_batch(offset, [(CLOCK_MS, b"key %d" % offset, b"value")] * 2)


def _of_transaction(offset: int) -> bytes:
    return v2_batch(
        offset,
        [(CLOCK_MS, b"key %d" % offset, b"value")] * 2,
        flags=TRANSACTIONAL,
        producer_id=PRODUCER,
        producer_epoch=0,
        base_sequence=0,
    )


def _end(offset: int) -> bytes:
    key, value = struct.pack(">hh", 0, COMMIT), struct.pack(">hi", 0, 0)
    return marker(offset, CLOCK_MS, Producer(PRODUCER, 0, 0, True), key=key, value=value)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Segments at 0 (plain), 2 (a transaction), 4 (its end), 5 and 7 (plain)."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    batches = {0: _plain(0), 2: _of_transaction(2), 4: _end(4), 5: _plain(5), 7: _plain(7)}
    for base, data in batches.items():
        (folder / f"{base:020d}.log").write_bytes(data)
    return folder


def _read(folder: Path, *, cleaned: int | None = 0) -> CleanedLog:
    noted = {"high_watermark": 9} | ({} if cleaned is None else {"cleaner_offset": cleaned})
    parent, entries = str(folder.parent), entries_of(str(folder.parent), folder.name)
    return read_log(parent, folder.name, entries, noted, CleanerConfig())


def _lose(folder: Path, base: int) -> None:
    (folder / f"{base:020d}.log").unlink()


def test_a_transaction_whose_marker_may_be_in_a_missing_segment_is_not_called_open(
    log: Path,
) -> None:
    assert _read(log).first_unstable is None
    _lose(log, 4)

    with pytest.raises(NotKnownError) as refused:
        _read(log)

    assert str(refused.value) == (
        "offsets 4 to 4 are in no segment: a segment is missing; the transaction that is open since"
        " offset 2 may have ended there"
    )


@pytest.mark.parametrize("cleaned", [0, 6, None])
def test_the_cleaner_never_was_behind_the_begin_of_an_open_transaction(
    log: Path, cleaned: int | None
) -> None:
    _lose(log, 4)

    with pytest.raises(NotKnownError, match="may have ended there"):
        _read(log, cleaned=cleaned)


def test_a_transaction_that_is_open_in_a_whole_log_is_open(log: Path) -> None:
    (log / f"{4:020d}.log").write_bytes(v2_batch(4, [(CLOCK_MS, b"k", b"v")]))

    assert _read(log).first_unstable == 2


def test_what_began_in_a_missing_segment_may_be_open(log: Path) -> None:
    _lose(log, 2)
    _lose(log, 4)

    with pytest.raises(NotKnownError, match=r"offsets 2 to 4 .*; a transaction may have begun"):
        _read(log)
    assert _read(log, cleaned=5).first_unstable is None  # compaction left the gap


def test_a_snapshot_behind_a_missing_segment_tells_what_was_open(log: Path) -> None:
    _lose(log, 4)
    state = ProducerState({PRODUCER: ProducerEntry(0)}, {PRODUCER: 2}, {2: PRODUCER})
    (log / f"{7:020d}.snapshot").write_bytes(encode_snapshot(state))

    assert _read(log).first_unstable == 2

    (log / f"{7:020d}.snapshot").write_bytes(encode_snapshot(ProducerState()))
    assert _read(log).first_unstable is None


def test_a_segment_that_is_cut_within_a_batch_is_as_one_that_is_missing(log: Path) -> None:
    shutil.copy(log / f"{4:020d}.log", log / "whole")
    (log / f"{4:020d}.log").write_bytes((log / "whole").read_bytes()[:-1])
    (log / "whole").unlink()

    with pytest.raises(NotKnownError, match="may have ended there"):
        _read(log)
