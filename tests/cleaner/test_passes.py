"""What a pass would make of drawn logs, against Kafka's own cleaner."""

import os
import random
from pathlib import Path

import pytest

from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.storage.files import place
from kafka_segments.kafka.broker_rules.cleaner.log_cleaner import CleanerConfig, cleanable
from kafka_segments.kafka.broker_rules.cleaner.outcome import LogPass, PassCounts
from kafka_segments.kafka.broker_rules.cleaner.sample import estimate, sample_of
from kafka_segments.verbs.find.cleaner.configs import NodeConfig
from kafka_segments.verbs.find.cleaner.log_facts import read_log
from kafka_segments.verbs.find.cleaner.pass_reading import read_pass
from support.kafka.kafka_referee import Answer, Referee
from support.logs.compacted_topic import CompactedTopic, Replica
from support.logs.log_copies import CLOCK_MS
from support.logs.spoilt_batches import FAULTS, sound_batches
from support.logs.strategies import v2_batch

DAY_MS = 86_400_000
ROUNDS = 3
EXPIRATION_MS = 10**12
"""No producer is ever too old: those that a load reads from batches are never looked at."""


def _foretold(
    folder: Path, clean: int | None, now_ms: int, map_bytes: int, *, samples: bool = False
) -> LogPass | None:
    config = CleanerConfig(delete_retention_ms=1000)
    entries = entries_of(str(folder.parent), folder.name)
    noted = {} if clean is None else {"cleaner_offset": clean}
    log = read_log(str(folder.parent), folder.name, entries, noted, config)
    found = cleanable(log, config, now_ms=now_ms)
    if not found.cleanable_bytes:
        return None
    node = NodeConfig(True, map_bytes, 1, 0.9, EXPIRATION_MS)
    return read_pass(
        place(str(folder)), entries, log, found, config, node, now_ms=now_ms, samples=samples
    )


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.log"))


def test_a_sample_of_the_clean_part_is_right_within_its_error(seed: int, tmp_path: Path) -> None:
    rng, folder = random.Random(f"{seed} sample"), tmp_path / "t-0"
    folder.mkdir()
    offset = 0
    for number in range(122):
        keys = range(offset, offset + 30) if number < 120 else rng.choices(range(offset), k=900)
        value = rng.randbytes(rng.randrange(60))
        data = v2_batch(offset, [(CLOCK_MS, b"key %06d" % key, value) for key in keys])
        (folder / f"{offset:020d}.log").write_bytes(data)
        offset += len(keys)
    clean = 120 * 30

    exact = _foretold(folder, clean, CLOCK_MS, 1 << 20)
    sampled = _foretold(folder, clean, CLOCK_MS, 1 << 20, samples=True)

    assert exact is not None and exact.freed_bytes is not None and exact.unread is None
    assert sampled is not None and sampled.freed_bytes is not None and sampled.unread is not None
    assert sampled.clean_until == exact.clean_until
    off = abs(sampled.freed_bytes - exact.freed_bytes)
    assert off <= 2 * sampled.unread.error_bytes < exact.freed_bytes


def test_few_clean_segments_are_all_read() -> None:
    assert sample_of([1, 2, 3]) == [1, 2, 3]
    assert sample_of(range(100)) == [5, 15, 25, 35, 45, 55, 65, 75, 85, 95]
    assert estimate([(100, 50), (100, 50)], segments=20, total_bytes=1800) == (900, 0)


def _spoilt_log(referee: Referee, folder: Path, rng: random.Random, fault: str) -> None:
    """Write a log of two segments, have it loaded, and spoil a batch of the closed one."""
    folder.mkdir(parents=True)
    batches = sound_batches(rng)
    end = batches[-1][1]
    first = folder / f"{0:020d}.log"
    first.write_bytes(b"".join(data for _, _, data in batches))
    (folder / f"{end:020d}.log").write_bytes(v2_batch(end, [(CLOCK_MS, b"k", b"v")]))
    referee.clean_log(folder, first_dirty=2**62, now_ms=CLOCK_MS)
    modified = first.stat().st_mtime_ns
    chosen = [at for at, (_, _, data) in enumerate(batches) if data[16] == 2]
    for at in rng.sample(chosen, min(len(chosen), 1)):
        start, behind, data = batches[at]
        batches[at] = start, behind, SPOILS[fault](rng, data)
    first.write_bytes(b"".join(data for _, _, data in batches))
    os.utime(first, ns=(modified, modified))


def _torn(rng: random.Random, batch: bytes) -> bytes:
    return batch[: rng.randrange(1, len(batch))]


SPOILS = FAULTS | {
    "a batch cut off": _torn,
    "a magic that nobody knows": lambda _, batch: batch[:16] + b"\x03" + batch[17:],
    "a length of 0": lambda _, batch: batch[:8] + bytes(4) + batch[12:],
}


def _told(counts: PassCounts, before: Answer) -> Answer:
    """Return what is left in the form of the referee's answer."""
    return {
        "bytes": before["bytes"] - counts.bytes_before + counts.bytes_after,
        "records": before["records"] - counts.records_before + counts.records_after,
        "markers": before["markers"] - counts.markers_before + counts.markers_after,
    }


@pytest.mark.slow
@pytest.mark.parametrize("map_bytes", [1 << 20, 24 * 14])
def test_a_pass_makes_of_a_log_what_it_is_said_to(
    referee: Referee, seed: int, tmp_path: Path, map_bytes: int
) -> None:
    rng = random.Random(f"{seed} passes {map_bytes}")
    passes = 0
    for number in range(ROUNDS):
        topic, folder = CompactedTopic(rng, oddities=True), tmp_path / str(number) / "t-0"
        replica, fetched = Replica(folder, rng), 0
        for day in range(5):
            at_ms = CLOCK_MS + day * DAY_MS
            topic.write(rng.randint(20, 60), at_ms)
            if rng.random() < 0.7:
                topic.end_all(at_ms)
            replica.fetch(topic.batches[fetched:])
            fetched = len(topic.batches)
            now_ms = at_ms + rng.randrange(DAY_MS)
            before = referee.clean_log(folder, first_dirty=2**62, now_ms=now_ms)  # loads it alone
            before["bytes"] = _bytes(folder)
            foretold = _foretold(folder, replica.clean, now_ms, map_bytes)
            if foretold is None:
                continue
            done = referee.clean_log(
                folder, first_dirty=replica.clean or 0, now_ms=now_ms, map_bytes=map_bytes
            )
            passes += 1
            if "throws" in done:
                assert foretold.throws.endswith(f"{done['throws']}: {done['message']}")
                break
            replica.clean = done["clean"]
            assert foretold.clean_until == done["clean"]
            assert foretold.counts is not None, foretold
            told = _told(foretold.counts, before)
            assert told == {name: {**done, "bytes": _bytes(folder)}[name] for name in told}
    assert passes


@pytest.mark.slow
@pytest.mark.parametrize("fault", SPOILS)
def test_a_batch_at_which_the_cleaner_throws_is_told(
    referee: Referee, seed: int, tmp_path: Path, fault: str
) -> None:
    for draw in range(8):
        rng, folder = random.Random(f"{seed} {draw} throws"), tmp_path / str(draw) / "t-0"
        _spoilt_log(referee, folder, rng, fault)
        before, foretold = _bytes(folder), _foretold(folder, None, CLOCK_MS, 1 << 20)
        assert foretold is not None

        done = referee.clean_log(folder, first_dirty=0, now_ms=CLOCK_MS, is_clean=True)

        if foretold.unknown:
            assert "the cleaner does not look at checksums" in foretold.unknown
        elif "throws" in done:
            assert foretold.throws, done
        else:
            assert foretold.counts is not None, (draw, foretold, done)
            left = before - foretold.counts.bytes_before + foretold.counts.bytes_after
            about = foretold.counts.estimated_bytes
            assert left == pytest.approx(_bytes(folder), abs=about)
