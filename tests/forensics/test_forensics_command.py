"""``forensics`` over log directories, on a real Spark."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.logs.strategies import v1_message, v2_batch

pytestmark = pytest.mark.usefixtures("spark")

NOW_MS = 1_577_836_800_000


def _run(*arguments: object) -> tuple[int, list[dict[str, Any]], str]:
    given = map(str, ("forensics", *arguments, "--now-ms", NOW_MS))
    result = CliRunner().invoke(cli, [*given, "--output", "json"])
    assert result.exit_code in (0, 1), result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return result.exit_code, rows, result.stderr


def _write(folder: Path, base_offset: int, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{base_offset:020d}.log"
    file.write_bytes(data)
    return file


def _batch(offset: int) -> bytes:
    return v2_batch(offset, [(NOW_MS - 10, None, b"a")])


@pytest.fixture(scope="module")
def log_dir(broker: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory of a broker with one log."""
    folder = tmp_path_factory.mktemp("forensics")
    shutil.copytree(broker / "logs" / "ct-two-partitions-0", folder / "ct-two-partitions-0")
    return folder


@pytest.fixture(scope="module")
def judged(spark: SparkSession, log_dir: Path) -> tuple[int, list[dict[str, Any]]]:
    """The verb's exit status and rows for it."""
    status, rows, _ = _run("--source", log_dir)
    return status, rows


def test_forensics_reads_a_brokers_logs(judged: tuple[int, list[dict[str, Any]]]) -> None:
    status, rows = judged

    assert (status, {row["topic"] for row in rows}) == (1, {"ct-two-partitions"})


def test_as_many_batches_are_refused_as_are_counted(
    log_dir: Path, judged: tuple[int, list[dict[str, Any]]]
) -> None:
    _, refused, _ = _run("--source", log_dir, "--refused")

    assert sum(row["refused_after_batches"] for row in judged[1]) == len(refused)
    assert all(row["refused_by"] == ["after"] for row in refused)


def test_a_person_reads_the_name_of_the_log(log_dir: Path) -> None:
    result = CliRunner().invoke(cli, ["forensics", "--source", str(log_dir)])

    assert "ct-two-partitions-0" in result.output


@pytest.mark.parametrize("refused", [(), ("--refused",)])
def test_a_segment_that_cannot_be_read_on_is_named_and_is_a_finding(
    tmp_path: Path, refused: tuple[str, ...]
) -> None:
    cut = _write(tmp_path / "t-0", 0, _batch(0) + b"\x01" * 100)
    _write(tmp_path / "t-0", 1, _batch(1))

    status, rows, said = _run("--source", tmp_path, *refused)

    assert status == 1
    assert [row["batches"] for row in rows] == ([] if refused else [2])
    assert f"{cut}: " in said
    assert f"(at byte {len(_batch(0))})" in said
    assert "1 segments or folders not read to their end, 1 of them findings" in said


def test_what_a_running_broker_writes_is_named_and_is_no_finding(tmp_path: Path) -> None:
    _write(tmp_path / "t-0", 0, _batch(0))
    active = _write(tmp_path / "t-0", 1, _batch(1) + _batch(2)[:-5])

    status, rows, said = _run("--source", tmp_path)

    assert (status, [row["batches"] for row in rows]) == (0, [2])
    assert f"{active}: " in said
    assert "1 segments or folders not read to their end, 0 of them findings" in said


def test_messages_of_old_formats_are_counted_though_they_name_no_producer(tmp_path: Path) -> None:
    _write(tmp_path / "t-0", 0, v1_message(0, NOW_MS - 10, None, b"a") + _batch(1))

    status, rows, said = _run("--source", tmp_path)

    assert (status, said) == (0, "")
    assert [(row["producer_id"], row["batches"], row["unit"]) for row in rows] == [
        (None, 1, "ms"),
        (-1, 1, "ms"),
    ]


def test_a_source_without_segments_is_named_beside_one_that_has_some(
    log_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "not-mounted").mkdir()

    status, rows, told = _run("--source", log_dir, "--source", tmp_path / "not-mounted")

    assert (status, bool(rows)) == (1, True)
    assert f"no segments under {tmp_path / 'not-mounted'}" in told
