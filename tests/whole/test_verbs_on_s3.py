"""Every verb with sources, index files and warehouse in a bucket answers as on a disk."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.spark.session import SHORT_RUN_OPTIONS
from support.spark.stored_builds import files
from support.stores.object_store import ObjectStore, Request
from support.stores.s3_files import S3Files
from support.stores.s3_gateway import PROGRAM, S3Gateway, skip_without_gateway

pytestmark = pytest.mark.timeout(1800)
NOW_MS = "1800000000000"
SHORT = {"PYTHONUNBUFFERED": "1", "JAVA_TOOL_OPTIONS": SHORT_RUN_OPTIONS}
BUCKET = "verbs"
# Where the copy lies, when it was put there, and what is drawn or timed in each run.
OF_THE_COPY = {
    *("path", "log_dir", "fingerprint", "last_modified_ms", "source", "sources", "warehouse"),
    *("index_dir", "run_id", "scanned_at", "decided_at", "started_at", "seconds", "options"),
}
Answer = list[dict[str, Any]]


class Ran(NamedTuple):
    """What a verb printed as JSON, without what belongs to the copy, and its exit status."""

    verb: str
    status: int
    rows: Answer


RunLines = Callable[[list[list[str]]], list[Ran]]


def lines_of_verbs(root: str, tables: str, *, at_length: bool) -> list[list[str]]:
    """Give verbs, or some, on ``root``'s logs with options; ``tables`` is the warehouse."""
    asked = ["--warehouse", tables, "--output", "json"]
    decided = [*asked, "--now-ms", NOW_MS]
    looked = ["--warehouse", f"{tables}-looked", "--output", "json", "--now-ms", NOW_MS]
    some = [
        ["build", "--source", f"{root}/logs", "--index-dir", f"{root}/indexes", *decided],
        ["search", "offsets", "--time", "2023-11-14T22:00:00Z", "--time", "LATEST", *asked],
    ]
    if not at_length:
        return some
    return [
        *some,
        ["audit", "--source", f"{root}/logs", *decided],
        ["retention", *decided, "--set", "retention_ms=1"],
        ["roll", *decided, "--set", "segment_ms=1"],
        ["build", "--check", "index", "--source", f"{root}/logs", *looked],
        ["search", "--time", "2023-11-14T22:13:21.500Z", *looked],
    ]


def lines_of_upkeep(tables: str, page: Path, *, at_length: bool) -> list[list[str]]:
    """Give verbs that keep a warehouse, if at length, and then the table of segments."""
    decided = ["--warehouse", tables, "--now-ms", NOW_MS]
    columns = "topic, partition, base_offset, next_offset, record_count, valid_bytes"
    query = f"SELECT {columns} FROM segments ORDER BY ALL"
    kept = [["validate", *decided], ["compact", *decided], ["report", *decided, "--out", str(page)]]
    listed = ["sql", query, "--warehouse", tables, "--output", "json"]
    return [*kept, listed] if at_length else [listed]


def run_here(lines: list[list[str]]) -> list[Ran]:
    """Run verbs in this process, in the session of the tests."""
    ran = []
    for line in lines:
        done = CliRunner().invoke(cli, line, catch_exceptions=False)
        ran.append(Ran(line[0], done.exit_code, _rows(done.stdout.splitlines())))
    return ran


def run_in_shell(environment: dict[str, str]) -> RunLines:
    """Give what runs verbs in a process of its own, with a session and variables of its own."""

    def run(lines: list[list[str]]) -> list[Ran]:
        text = "".join(" ".join(f"'{word}'" for word in line) + "\n" for line in lines)
        shell = subprocess.run(
            [sys.executable, "-m", "kafka_segments", "shell"],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=os.environ | environment | SHORT,
        )
        ran, said = [], []
        for line in shell.stdout.splitlines():
            said.append(line)
            if line.startswith("status "):
                status = int(line.removeprefix("status ").partition(",")[0])
                ran.append(Ran(lines[len(ran)][0], status, _rows(said)))
                said = []
        assert len(ran) == len(lines), shell.stdout
        return ran

    return run


def _rows(said: Iterable[str]) -> Answer:
    rows = [json.loads(line) for line in said if line.startswith("{")]
    kept = [{name: value for name, value in row.items() if name not in OF_THE_COPY} for row in rows]
    return sorted(kept, key=str)


@pytest.fixture(scope="module")
def logs(broker: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of a broker with the files that it rebuilt beside them."""
    target = tmp_path_factory.mktemp("verbs") / "logs"
    for name in ("ct-two-partitions-0", "ct-two-partitions-1"):
        for kind in ("logs", "rebuilt"):
            shutil.copytree(broker / kind / name, target / name, dirs_exist_ok=True)
    return target


@pytest.fixture(
    scope="module", params=[False, pytest.param(True, marks=pytest.mark.long)], ids=["some", "all"]
)
def at_length(request: pytest.FixtureRequest) -> bool:
    """Whether all verbs are run."""
    chosen: bool = request.param
    return chosen


@pytest.fixture(scope="module")
def on_disk(spark: SparkSession, logs: Path, at_length: bool) -> list[Ran]:
    """What the verbs answer of the logs on a disk."""
    tables = logs.parent / f"tables-{at_length}"
    return run_here(lines_of_verbs(str(logs.parent), str(tables), at_length=at_length))


@contextmanager
def fail_at_times(store: ObjectStore, *, draw: random.Random) -> Iterator[None]:
    """Have one request in twenty go wrong: refused, without an answer, broken off, or slow."""

    def goes_wrong(share: float, *methods: str) -> Callable[[Request], bool]:
        return lambda request: (not methods or request.method in methods) and draw.random() < share

    store.refuses = goes_wrong(0.02)
    store.drops = goes_wrong(0.01)
    store.cuts_off = goes_wrong(0.015, "GET")
    store.waits = goes_wrong(0.005)
    try:
        yield
    finally:
        store.refuses = store.drops = store.cuts_off = store.waits = lambda _: False


@pytest.fixture(
    params=["moto", "a server of others", pytest.param("with faults", marks=pytest.mark.long)]
)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[S3Files, RunLines]]:
    """An S3 server, and what runs verbs on it: one environment names one server."""
    if request.param == "moto":
        if PROGRAM.exists():
            pytest.skip("the same verbs run on the server of others")
        store: ObjectStore = request.getfixturevalue("object_store")
        yield store, run_here
        return
    if request.param == "with faults":
        disturbed: ObjectStore = request.getfixturevalue("object_store")

        def run_disturbed(lines: list[list[str]]) -> list[Ran]:
            with fail_at_times(disturbed, draw=random.Random(request.node.name)):
                return run_here(lines)

        yield disturbed, run_disturbed
        return
    skip_without_gateway()
    with S3Gateway(tmp_path / "s3") as gateway:
        yield gateway, run_in_shell(gateway.environment)


def test_every_verb_on_s3_answers_as_on_a_disk(
    server: tuple[S3Files, RunLines],
    on_disk: list[Ran],
    logs: Path,
    tmp_path: Path,
    at_length: bool,
) -> None:
    store, run = server
    store.put_folder(logs, f"{BUCKET}/logs")
    page, tables = tmp_path / "report.html", f"s3a://{BUCKET}/tables"
    asked = lines_of_verbs(f"s3://{BUCKET}", tables, at_length=at_length)

    ran = run([*asked, asked[0], *lines_of_upkeep(tables, page, at_length=at_length)])

    assert ran[: len(asked)] == on_disk
    again, *kept, listed = ran[len(asked) :]
    assert again == Ran("build", 0, [])  # nothing changed, nothing is read
    if at_length:
        looked, found = ran[len(asked) - 2 : len(asked)]
        assert [row["checked"] for row in looked.rows] == ["index"] * 4
        assert [row["true_offset"] for row in found.rows] == [0, 1500]
        assert kept == [Ran("validate", 0, []), Ran("compact", 0, []), Ran("report", 0, [])]
        assert page.stat().st_size > 10_000
    assert [row["record_count"] for row in listed.rows] == [1581, 167, 1566, 142]
    assert store.objects(f"{BUCKET}/indexes") == files(logs.parent / "indexes")
    assert store.objects(f"{BUCKET}/logs") == files(logs)
