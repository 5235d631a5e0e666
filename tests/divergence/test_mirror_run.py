"""``divergence mirror`` over folders: transactions, offsets of its own, replicas, offset syncs."""

import json
import random
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.logs.log_copies import CLOCK_MS, LogCopy, flipped
from support.logs.log_folders import write_copies
from support.logs.sound_logs import ABORT, COMMIT, LZ4, Producer, compressed, marker
from support.logs.strategies import TRANSACTIONAL, v2_batch, v2_record

Record = tuple[bytes | None, bytes | None]
PREFIX = "east."
SYNCS = "mm2-offset-syncs.west.internal-0"


class Log:
    """A log that is written batch by batch, and rolled after each few."""

    def __init__(self, rng: random.Random, start: int = 0) -> None:
        self._rng = rng
        self.next_offset = start
        self.segments: list[tuple[int, list[bytes]]] = []

    def write(self, records: list[Record], producer: Producer | None = None) -> list[int]:
        """Append a batch; give the offsets of its records."""
        first = self.next_offset
        codec = self._rng.choice([0, LZ4])
        payload = b"".join(
            v2_record(timestamp_delta=0, offset_delta=delta, key=key, value=value)
            for delta, (key, value) in enumerate(records)
        )
        transactional = (
            {"flags": TRANSACTIONAL, "producer_id": producer.producer_id, "producer_epoch": 0}
            if producer
            else {}
        )
        self._append(
            v2_batch(
                first,
                [(CLOCK_MS, key, value) for key, value in records],
                codec=codec,
                payload=compressed(payload, codec),
                **transactional,
            ),
            len(records),
        )
        return list(range(first, self.next_offset))

    def end(self, producer: Producer, kind: int) -> None:
        """Append a marker."""
        key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0)
        self._append(marker(self.next_offset, CLOCK_MS, producer, key=key, value=value), 1)

    def _append(self, batch: bytes, offsets: int) -> None:
        if not self.segments or self._rng.random() < 0.2:
            self.segments.append((self.next_offset, []))
        self.segments[-1][1].append(batch)
        self.next_offset += offsets

    def copy(self, *, lost: int = 0) -> LogCopy:
        """Give a copy, whose high watermark lies as many offsets behind its end."""
        return LogCopy(self.segments, high_watermark=self.next_offset + lost)


def _records(rng: random.Random, most: int = 6) -> list[Record]:
    return [
        (rng.choice([None, rng.randbytes(3)]), rng.randbytes(12))
        for _ in range(rng.randint(1, most))
    ]


def _mirrored(rng: random.Random) -> tuple[Log, Log, list[tuple[int, int]]]:
    """Write a log with transactions and a mirror of what was committed; give the offset pairs."""
    source, mirror = Log(rng), Log(rng, start=rng.randint(0, 50))
    pairs: list[tuple[int, int]] = []
    producer = Producer(7, 0, 0, is_transactional=True)
    for _ in range(30):
        kind = rng.choice([None, COMMIT, ABORT])
        records = _records(rng)
        offsets = source.write(records, None if kind is None else producer)
        if kind is not None:
            source.end(producer, kind)
        if kind != ABORT:
            pairs += zip(offsets, mirror.write(records), strict=True)
    return source, mirror, pairs


def _sync(topic: str, partition: int, source: int, mirror: int) -> Record:
    name = topic.encode()
    key = struct.pack(">h", len(name)) + name + struct.pack(">i", partition)
    return key, struct.pack(">qq", source, mirror)


def _run(*arguments: object) -> tuple[int, list[dict], str]:
    given = [*map(str, arguments), "--prefix", PREFIX, "--output", "json"]
    result = CliRunner().invoke(cli, ["divergence", "mirror", *given])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return result.exit_code, rows, result.stderr


def test_a_mirror_of_what_was_committed_is_whole_and_its_offsets_are_translated(
    spark: SparkSession, seed: int, tmp_path: Path
) -> None:
    rng = random.Random(f"{seed} mirror")
    source, mirror, pairs = _mirrored(rng)
    syncs = Log(rng)
    syncs.write([_sync("t", 0, *pair) for pair in rng.sample(pairs, 5)])
    behind = Log(rng)  # a replica that lags is not read
    behind.write([(b"k", b"v")])
    write_copies(tmp_path / "n1", {"t-0": source.copy(), "other-0": source.copy()})
    write_copies(tmp_path / "n2", {"t-0": behind.copy(), SYNCS: syncs.copy()})
    write_copies(tmp_path / "m", {f"{PREFIX}t-0": mirror.copy(), "own-0": mirror.copy()})
    places = [*("--source", tmp_path / "n1"), *("--source", tmp_path / "n2")]

    status, rows, told = _run(*places, "--mirror", tmp_path / "m")

    assert (status, {row["kind"] for row in rows}) == (0, {"mirrored", "aborted"}), told
    assert {(row["topic"], row["mirror_topic"]) for row in rows} == {("t", f"{PREFIX}t")}
    translated = []
    for row in rows:
        if row["kind"] == "mirrored":
            translated += [
                (at, there)
                for (at, there) in pairs
                if row["from_offset"] <= at < row["until_offset"]
                and row["mirror_from"] <= there < row["mirror_until"]
            ]
            assert row["records"] == sum(
                row["from_offset"] <= at < row["until_offset"] for at, _ in pairs
            )
    assert translated == pairs
    assert f"1 logs with a mirror, 1 without; {len(pairs)} records are in both" in told


def test_what_a_mirror_lost_doubled_and_mistranslated_is_found(
    spark: SparkSession, seed: int, tmp_path: Path
) -> None:
    rng = random.Random(f"{seed} lossy mirror")
    source, mirror, syncs = Log(rng), Log(rng), Log(rng)
    pairs, lost, doubled = {}, [], []
    for number in range(20):
        records = _records(rng)
        offsets = source.write(records)
        if number == 5:
            lost = offsets
            continue
        pairs |= dict(zip(offsets, mirror.write(records), strict=True))
        if number == 9:
            doubled = mirror.write(records)
    ahead = source.write(_records(rng))
    right, wrong = rng.sample(sorted(pairs), 2)
    syncs.write([_sync("t", 0, right, pairs[right]), _sync("t", 0, wrong, pairs[wrong] + 1)])
    syncs.write([_sync("t", 1, wrong, pairs[wrong] + 1), _sync("t", 0, lost[0], 0)])
    write_copies(tmp_path / "s", {"t-0": source.copy(lost=1)})
    write_copies(tmp_path / "m", {f"{PREFIX}t-0": mirror.copy(), SYNCS: syncs.copy()})

    status, rows, told = _run("--source", tmp_path / "s", "--mirror", tmp_path / "m")

    found = {row["kind"]: row for row in rows if row["kind"] != "mirrored"}
    assert status == 1
    assert found["unread"]["detail"].startswith(
        f"source: the log ends at offset {source.next_offset}, below the high watermark"
    )
    assert [row["kind"] for row in rows if row["is_finding"]] == [
        *("unread", "missing", "duplicated"),
        *["wrong sync"] * 2,
    ], told
    assert (found["missing"]["from_offset"], found["missing"]["until_offset"]) == (
        lost[0],
        lost[-1] + 1,
    )
    assert (found["duplicated"]["mirror_from"], found["duplicated"]["mirror_until"]) == (
        doubled[0],
        doubled[-1] + 1,
    )
    assert found["behind"]["records"] == len(ahead)
    assert {row["from_offset"] for row in rows if row["kind"] == "wrong sync"} == {wrong, lost[0]}


def test_what_cannot_be_read_is_told(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(3)
    source, mirror, _ = _mirrored(rng)
    hurt = source.copy()
    hurt.spoil(0, flipped(hurt.file(0), 70))
    write_copies(tmp_path / "s", {"t-0": hurt})
    write_copies(tmp_path / "m", {f"{PREFIX}t-0": mirror.copy()})

    status, rows, _ = _run("--source", tmp_path / "s", "--mirror", tmp_path / "m")

    assert status == 1
    assert rows[0]["kind"] == "unread"
    assert rows[0]["detail"].startswith("source ")
    assert f"{0:020d}.log at byte 0" in rows[0]["detail"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (("--source", "{0}", "--mirror", "{0}"), "is given as source and as mirror"),
        (("--source", "{0}", "--mirror", "{1}"), "no log of the source has a mirror"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    spark: SparkSession, tmp_path: Path, given: tuple[str, ...], reason: str
) -> None:
    log = Log(random.Random(1))
    log.write([(b"k", b"v")])
    for name in ("a", "b"):
        write_copies(tmp_path / name, {"t-0": log.copy()})

    status, _, told = _run(*(part.format(tmp_path / "a", tmp_path / "b") for part in given))

    assert status == 2
    assert reason in told
