"""Which segments a start reads for the producers' state, against Kafka's own load of the log.

Each segment has a producer of its own, and no snapshot that lies there knows one: those that the
last snapshot has after a load are of the segments that were read. Some cannot be read.
"""

import random
import shutil
from pathlib import Path

from kafka_segments.files.node.last_end import read_last_end
from kafka_segments.files.node.producer_search import has_producers
from kafka_segments.files.node.producer_snapshots import by_sound_snapshots
from kafka_segments.files.storage.files import place
from kafka_segments.kafka.broker_rules.start.log_start import FoundLog, decide_start
from kafka_segments.kafka.index.log.snapshots import decode_snapshot
from kafka_segments.kafka.text.names import FolderState, file_name
from support.kafka.kafka_referee import Referee
from support.logs.strategies import v2_batch

BASES, A_SEGMENT = (0, 10, 20, 30, 40), 10
END = BASES[-1] + A_SEGMENT
NOW_MS = 1_700_000_000_000
STARTS = 40


def _write(folder: Path, *, has_producers: bool) -> None:
    """Write the segments; in their last batches there is a producer, by the base offset."""
    folder.mkdir(parents=True, exist_ok=True)
    for base in BASES:
        batches = [
            v2_batch(
                offset,
                [(NOW_MS, None, b"value")],
                producer_id=base if is_last and has_producers else -1,
                producer_epoch=0 if is_last and has_producers else -1,
                base_sequence=0 if is_last and has_producers else -1,
            )
            for offset in range(base, base + A_SEGMENT)
            for is_last in [offset == base + A_SEGMENT - 1]
        ]
        (folder / file_name(base, ".log")).write_bytes(b"".join(batches))


def _spoil(draw: random.Random, log: Path) -> None:
    """Remove snapshots and offset indexes, spoil some, and let snapshots lie elsewhere."""
    stray = log / file_name(BASES[1], ".snapshot")
    for offset in draw.sample((5, 35, 45, 60), draw.choice((0, 0, 1, 2))):
        shutil.copy(stray, log / file_name(offset, ".snapshot"))
    there = (*BASES[1:], END)
    for offset in draw.sample(there, draw.choice((0, 1, 1, 2, len(there)))):
        (log / file_name(offset, ".snapshot")).unlink()
    for file in sorted(log.glob("*.snapshot")):
        if draw.random() < 0.2:
            file.write_bytes(draw.choice((b"", b"x" * 56, file.read_bytes()[:-1])))
    for base in draw.sample(BASES, draw.choice((0, 0, 1, 2))):
        (log / file_name(base, ".index")).unlink()


def test_a_load_reads_what_is_said(referee: Referee, tmp_path: Path, seed: int) -> None:
    draw, sound = random.Random(seed), tmp_path / "sound" / "t-0"
    _write(sound, has_producers=False)
    referee.load_log(sound, is_clean=False, now_ms=NOW_MS)
    _write(sound, has_producers=True)
    found = set()
    for number in range(STARTS):
        log = tmp_path / str(number) / "t-0"
        shutil.copytree(sound, log)
        _spoil(draw, log)
        is_clean, point = draw.random() < 0.7, draw.choice((0, 25, 40, END))
        sizes = {file.name: file.stat().st_size for file in log.iterdir()}
        end = read_last_end(place(str(log)), sizes)
        of_log = FoundLog("/d", "t-0", "t", 0, FolderState.LIVE, sizes, point, end=end)

        start = by_sound_snapshots(place(str(log)), decide_start(of_log, is_clean=is_clean))
        referee.load_log(log, is_clean=is_clean, recovery_point=point, now_ms=NOW_MS)

        newest = max(log.glob("*.snapshot"))
        read = tuple(sorted(decode_snapshot(newest.read_bytes()).entries))
        told = (number, is_clean, point, sorted(sizes))
        assert (int(newest.stem), read) == (END, start.read), told
        found.add((is_clean, start.replayed))
    assert len(found) > 8


def test_only_a_log_with_producers_has_some_to_forget(tmp_path: Path) -> None:
    found = []
    for name, with_producers in (("t-0", True), ("t-1", False)):
        folder = tmp_path / name
        _write(folder, has_producers=with_producers)
        sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
        found.append(has_producers(place(str(folder)), BASES, sizes))
        (folder / file_name(END, ".snapshot")).touch()
        asked = {**sizes, file_name(END, ".snapshot"): 0}
        assert has_producers(place(str(folder)), BASES, asked) is None
        last = file_name(BASES[-1], ".log")
        larger = {**sizes, last: 65 * 1024 * 1024}
        assert has_producers(place(str(folder)), BASES, larger) is None

    assert found == [True, False]
