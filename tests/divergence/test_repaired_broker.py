"""Whole logs of three damaged copies: their files are a broker's, and it reads every record."""

import json
import random
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.kafka.kafka_broker import KafkaBroker
from support.logs.log_copies import flipped
from support.model.plain_decoder import plain_records, positions

LOGS = ("ct-none-0", "one-record-batches-0", "txn-0")
PAGE = 4096
NOW_MS = 1_795_000_000_000
CONTROL = 0x20
pytestmark = pytest.mark.slow


def _hurt(path: Path, rng: random.Random, share: float) -> None:
    """Spoil the batch that lies at a share of a segment: a bit, or zeros to the end of it."""
    log = path.read_bytes()
    batches = list(positions(log))
    start, end = batches[int(share * len(batches))]
    if rng.random() < 0.5:
        path.write_bytes(flipped(log, rng.randrange(start + 12, end), rng.randrange(8)))
    else:
        zeros = min(PAGE, end - start - 12)
        path.write_bytes(log[: end - zeros] + bytes(zeros) + log[end:])


def _copies(broker: Path, folder: Path, rng: random.Random) -> list[str]:
    """Make three copies of logs, each damaged at other places."""
    shares = {"a": (0.1, 0.5), "b": (0.3, 0.7), "c": (0.2, 0.6)}
    for name, places in shares.items():
        for log in LOGS:
            target = folder / name / log
            shutil.copytree(broker / "logs" / log, target)
            segments = sorted(target.glob("*.log"))
            for place in places:
                _hurt(segments[0] if log != "txn-0" else segments[1], rng, place)
            if name == "a":
                segments[-1].write_bytes(segments[-1].read_bytes()[: -PAGE - 17])
            if name == "c":
                segments[-2].unlink()
    return [part for name in shares for part in ("--copy", f"{name}={folder}/{name}")]


def test_a_broker_starts_on_repaired_logs_and_reads_every_record(
    spark: SparkSession, broker: Path, seed: int, tmp_path: Path
) -> None:
    copies = _copies(broker, tmp_path, random.Random(f"{seed} repaired"))
    out = tmp_path / "out"
    options = ("--out", str(out), "--now-ms", str(NOW_MS), "--output", "json")
    result = CliRunner().invoke(cli, ["divergence", "repair", *copies, *options])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.exit_code, {row["state"] for row in rows}) == (0, {"built"}), result.stderr
    for log in LOGS:
        assert len({row["copy"] for row in rows if f"{row['topic']}-0" == log}) > 1
        for folder, suffixes in (("logs", (".log",)), ("rebuilt", ("index", ".snapshot"))):
            expected = {
                path.name: path.read_bytes()
                for path in (broker / folder / log).iterdir()
                if path.name.endswith(suffixes)
            }
            made = {
                path.name: path.read_bytes()
                for path in (out / log).iterdir()
                if path.name.endswith(suffixes)
            }
            assert sorted(made) == sorted(expected)
            assert made == expected, log

    (tmp_path / "kafka").mkdir()
    with KafkaBroker(tmp_path / "kafka") as kafka:
        kafka.start_broker()
        kafka.create({log.rpartition("-")[0]: 1 for log in LOGS})
        kafka.stop_broker()
        for log in LOGS:
            target = kafka.log_dir / log
            metadata = (target / "partition.metadata").read_bytes()
            shutil.rmtree(target)
            shutil.copytree(out / log, target)
            (target / "partition.metadata").write_bytes(metadata)
        kafka.log_file.write_text("")
        kafka.start_broker()
        for log in LOGS:
            kafka.fetch(log, tmp_path / log)
        kafka.stop_broker()

    assert "since clean shutdown file was found" in kafka.log_file.read_text()
    for log in LOGS:
        offsets = [int(line.split()[0]) for line in (tmp_path / log).read_text().splitlines()]
        assert offsets == [
            record.offset
            for path in sorted((broker / "logs" / log).glob("*.log"))
            for record in _data_records(path.read_bytes())
        ]


def _data_records(log: bytes) -> list:
    return [
        record for record in plain_records(log) if not log[record.batch_position + 22] & CONTROL
    ]
