"""Whole logs of three damaged copies: their files are those that a broker's recovery made."""

import json
import random
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from log_copies import flipped
from plain_decoder import positions

LOGS = ("ct-none-0", "one-record-batches-0", "txn-0")
PAGE = 4096
NOW_MS = 1_795_000_000_000
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


def test_repaired_logs_have_the_files_that_a_broker_made_of_the_sound_ones(
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
