"""``backup verify``: what a backup misses as of its moment, and nothing that came since."""

import json
import os
import random
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from log_copies import (
    CLOCK_MS,
    Batch,
    LogCopy,
    compacted,
    drawn_log,
    flipped,
    forked,
    rolled,
    without,
)
from log_folders import write_copies
from strategies import crc32c

HOUR_MS = 3_600_000
MOMENT = (CLOCK_MS + HOUR_MS) * 1_000_000


def _verify(*arguments: object) -> tuple[int, dict[str, dict], str]:
    result = CliRunner().invoke(cli, ["backup", "verify", *map(str, arguments), "--output", "json"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return (
        result.exit_code,
        {f"{row['topic']}-{row['partition']}": row for row in rows},
        result.stderr,
    )


def _dated(folder: Path, ns: int) -> None:
    """Let all segments of a backup be written at a moment, as a copy that keeps mtimes does."""
    for file in folder.rglob("*.log"):
        os.utime(file, ns=(ns, ns))


def _part(copy: LogCopy, until: int) -> LogCopy:
    return LogCopy(copy.segments[:until], copy.log_start, epochs=copy.epochs)


def _younger(log: list[Batch]) -> LogCopy:
    """Write batches of a day later."""
    copy = rolled(random.Random(1), log)
    day = (CLOCK_MS + 24 * HOUR_MS).to_bytes(8, "big")
    stamped = [
        (base, [_resealed(data[:27] + day + day + data[43:]) for data in batches])
        for base, batches in copy.segments
    ]
    return LogCopy(stamped, copy.log_start, epochs=copy.epochs)


def _resealed(batch: bytes) -> bytes:
    return batch[:17] + crc32c(batch[21:]).to_bytes(4, "big") + batch[21:]


@pytest.mark.slow
def test_what_came_since_and_what_retention_took_is_not_missed(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = random.Random(3)
    logs = [drawn_log(rng, keys=300) for _ in range(6)]
    backup, today, other = {}, {}, {}
    for log in logs:
        for copies in (backup, today, other):
            copies[f"t-{len(copies)}"] = rolled(rng, log)
    backup["t-0"] = rolled(rng, logs[0][:40])  # written since
    today["t-1"].segments = today["t-1"].segments[-1:]  # retention, in one copy further
    today["t-2"].log_start = logs[2][30].base  # deleted records
    today["t-3"] = rolled(rng, compacted(logs[3], logs[3][40].base), base=logs[3][0].base)
    today["t-3"].cleaner_offset = logs[3][40].base
    today["t-4"] = rolled(rng, forked(rng, logs[4], 50))  # an unclean election since
    del other["t-4"]
    del backup["t-5"]
    today["t-5"] = other["t-5"] = _younger(logs[5])
    for name, copies in (("b", backup), ("n1", today), ("n2", other)):
        write_copies(tmp_path / name, copies)
    _dated(tmp_path / "b", MOMENT)

    status, rows, told = _verify(
        *("--backup", tmp_path / "b"),
        *("--against", f"n1={tmp_path}/n1", "--against", f"n2={tmp_path}/n2"),
    )

    assert {name: row["misses"] for name, row in rows.items()} == {f"t-{n}": [] for n in range(6)}
    assert status == 0
    assert rows["t-0"]["complete_until"] == logs[0][40].base
    assert rows["t-4"]["since"][0].startswith(f"fork from {logs[4][50].base} on")
    assert rows["t-5"]["verdict"] == "made later"
    assert "5 of 5 logs are complete in the backup as of 2023-11-14 23:13:20.000 UTC" in told


@pytest.mark.slow
def test_what_a_backup_lacks_is_told_with_its_offsets(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(4)
    log = drawn_log(rng)
    while True:
        whole = rolled(rng, log)
        if len(whole.segments) > 4:
            break
    backup = {f"t-{number}": rolled(rng, log) for number in range(6)}
    at = len(backup["t-0"].file(1)) - 1
    backup["t-0"].spoil(1, flipped(backup["t-0"].file(1), at))
    backup["t-1"] = LogCopy([*whole.segments[:1], *whole.segments[2:]], whole.log_start)
    backup["t-2"] = LogCopy(whole.segments[1:], whole.log_start, epochs=whole.epochs)
    backup["t-3"] = _part(whole, 2)
    backup["t-3"].high_watermark = log[-1].last
    backup["t-4"] = _part(whole, 3)
    del backup["t-5"]
    write_copies(tmp_path / "b", backup)
    _dated(tmp_path / "b", MOMENT)
    write_copies(tmp_path / "n1", {f"t-{number}": rolled(rng, log) for number in range(6)})
    shutil.rmtree(tmp_path / "b" / "t-5", ignore_errors=True)
    bases = [base for base, _ in whole.segments]
    given = ("--backup", tmp_path / "b", "--against", f"n1={tmp_path}/n1")

    status, rows, told = _verify(*given, "--warehouse", tmp_path / "wh", "--now-ms", 5)

    found = {name: [miss["kind"] for miss in row["misses"]] for name, row in rows.items()}
    assert status == 1
    assert found == {
        "t-0": ["bit rot"],
        "t-1": ["lost middle"],
        "t-2": ["later start"],
        "t-3": ["behind"],
        "t-4": [],
        "t-5": ["missing log"],
    }
    assert rows["t-1"]["complete_until"] == bases[1]
    assert rows["t-2"]["misses"][0]["until_offset"] == bases[1]
    assert rows["t-3"]["misses"][0]["until_offset"] == log[-1].last
    assert rows["t-5"]["verdict"] == "missing"
    assert "1 of 6 logs are complete" in told

    status, again, told = _verify(
        *(*given, "--digests", tmp_path / "wh", "--moment", CLOCK_MS + HOUR_MS)
    )

    assert status == 1
    assert {name: row["verdict"] for name, row in again.items() if name != "t-4"} == {
        name: row["verdict"] for name, row in rows.items() if name != "t-4"
    }
    assert [miss["kind"] for miss in again["t-4"]["misses"]] == ["behind"]
    assert again["t-4"]["complete_until"] == bases[3]


@pytest.mark.slow
def test_what_a_backup_lost_behind_a_fork_is_missed(spark: SparkSession, tmp_path: Path) -> None:
    """One broker has not cut off the records of an older leader yet."""
    rng = random.Random(5)
    log = drawn_log(rng)
    newer = forked(rng, log, 40, more=12)
    write_copies(tmp_path / "b", {"t-0": without(rng, newer, 44, 47), "u-0": rolled(rng, newer)})
    for name, batches in (("n1", newer), ("n2", log)):
        write_copies(tmp_path / name, {topic: rolled(rng, batches) for topic in ("t-0", "u-0")})
    against = [part for name in ("n1", "n2") for part in ("--against", f"{name}={tmp_path}/{name}")]

    status, rows, _ = _verify("--backup", tmp_path / "b", *against)

    assert status == 1
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "t-0": "incomplete",
        "u-0": "complete",
    }
    assert [miss["kind"] for miss in rows["t-0"]["misses"]] == ["lost middle"]
    assert rows["t-0"]["complete_until"] == newer[44].base


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    status, _, told = _verify("--backup", tmp_path / "b", "--against", f"backup={tmp_path}/b")

    assert status == 2
    assert "the backup has this name" in told
