"""``divergence --digests``: what builds and earlier comparisons keep is not read again."""

import json
import os
import random
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from pyspark.testing import assertSchemaEqual

from kafka_segments.cli import cli
from kafka_segments.engine.tables.schemas import schema
from support.logs.log_copies import drawn_log, flipped, rolled
from support.logs.log_folders import write_copies


def _run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, list(map(str, arguments)))
    return result.exit_code, result.stdout, result.stderr


def _compare(folders: dict[str, Path], *more: object) -> tuple[list[dict], int]:
    """Give the findings, and how many bytes were read."""
    copies = [part for name, uri in folders.items() for part in ("--copy", f"{name}={uri}")]
    _, out, told = _run("divergence", *copies, *more, "--output", "json")
    read = re.search(r"read ([0-9]+ bytes|[0-9.]+ KiB|0 bytes)", told)
    assert read is not None, told
    number, unit = read[1].split()
    rows = [json.loads(line) for line in out.splitlines()]
    of_run = {"run_id", "decided_at"}
    findings = [
        {name: value for name, value in row.items() if name not in of_run}
        for row in rows
        if row["is_finding"]
    ]
    return findings, round(float(number) * {"bytes": 1, "KiB": 1024}[unit])


@pytest.mark.slow
def test_only_what_differs_or_is_unknown_is_read(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(5)
    logs = {f"t-{number}": drawn_log(rng) for number in range(4)}
    folders = {name: tmp_path / name for name in ("backup", "disk")}
    for folder in folders.values():
        write_copies(folder, {log: rolled(rng, batches) for log, batches in logs.items()})
    for name, folder in folders.items():
        status, _, told = _run(
            *("build", "--source", folder, "--warehouse", tmp_path / f"wh-{name}"),
            *("--digests", "--now-ms", 0),
        )
        assert status == 0, told
    known = [part for name in folders for part in ("--digests", tmp_path / f"wh-{name}")]
    kept = spark.read.format("delta").load(f"{tmp_path}/wh-disk/offset_ranges")
    assertSchemaEqual(kept.schema, schema("offset_ranges.v1"), ignoreNullable=True)
    assert kept.where("ranges IS NULL").count() == 0

    assert _compare(folders, *known) == ([], 0)

    hurt = max((folders["disk"] / "t-1").glob("*.log"), key=lambda file: file.stat().st_size)
    before = hurt.stat()
    hurt.write_bytes(flipped(hurt.read_bytes(), before.st_size - 1))
    os.utime(hurt, ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert _compare(folders, *known) == ([], 0)  # what rots changes no mtime
    os.utime(hurt)
    found, read = _compare(folders, *known, "--warehouse", tmp_path / "wh", "--now-ms", 9)
    assert [(row["topic"], row["partition"], row["kind"]) for row in found] == [("t", 1, "bit rot")]
    of_log = sum(file.stat().st_size for file in folders["backup"].glob("t-1/*.log"))
    assert before.st_size <= read <= before.st_size + 2 * of_log
    again, _ = _compare(folders, "--digests", tmp_path / "wh", *known)
    assert again == found  # what was found bad is read again
