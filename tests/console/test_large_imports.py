"""What needs no Spark does not wait for it: what is imported until a verb has said its line.

All verbs are asked in one process, whose imports add up. A new verb is among them by itself.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from kafka_segments.cli import cli
from kafka_segments.console.strict_options import Command
from kafka_segments.engine.tables import catalog

SLOW = ("great_expectations", "numba", "pandas", "pyspark", "sqlglot")
SAID = ("kafka-segments: ", "Error: ", "would read ")
LARGE = (*SLOW, "pyarrow")
ASKED = """
import json, sys
from kafka_segments.cli import cli
asked, large = json.load(sys.stdin)
for words in asked:
    try:
        cli(words)
    except SystemExit as end:
        loaded = [name for name in large if name in sys.modules]
        print(json.dumps([words, end.code, loaded]), flush=True)
"""
VALUES = {
    "at": "now",
    "copies": "a={path}",
    "group": "g",
    "last": "1h",
    "max_latency": "1m",
    "out": "{path}/out",
    "plan_id": "p",
    "query": "SELECT 1",
    "sources": "{path}",
    "times": "now",
    "to_cluster": "b",
    "topic_partition": "orders-0",
    "warehouse": "{path}",
}


def _verbs() -> dict[str, Command]:
    """Return every verb by its words, without the shell, which takes none that could be wrong."""
    found: dict[str, Command] = {}

    def walk(command: click.Command, words: tuple[str, ...]) -> None:
        if isinstance(command, click.Group):
            for name, verb in command.commands.items():
                walk(verb, (*words, name))
        if isinstance(command, Command) and words != ("shell",):
            found[" ".join(words)] = command

    walk(cli, ())
    return found


VERBS = _verbs()


def _words(verb: str, path: Path) -> list[str]:
    """Return a call of a verb that names a path wherever it takes one."""
    words = verb.split()
    for param in VERBS[verb].params:
        takes = param.required or param.name in ("sources", "warehouse")
        if not takes or (param.name == "sources" and "rebuild" in VERBS[verb].params):
            continue
        kind = param.type
        value = str(kind.choices[0]) if isinstance(kind, click.Choice) else VALUES.get(param.name)
        if value is None:
            value = str(path)
        option = [param.opts[0]] if isinstance(param, click.Option) else []
        words += [*option, value.format(path=path)]
    return words


def _told(
    asked: list[list[str]], large: tuple[str, ...], environment: Mapping[str, str] = os.environ
) -> list[tuple[int, str]]:
    """Run calls in one process; return the status of each and what all say, line by line.

    None of them may import what is large.
    """
    done = subprocess.run(
        [sys.executable, "-c", ASKED],
        input=json.dumps([asked, large]),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    ends: list[tuple[Any, int, list[str]]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [words for words, _, _ in ends] == asked
    for words, _, loaded in ends:
        assert not loaded, f"{' '.join(words)} imports {loaded}"
    lines = [line for line in done.stderr.splitlines() if line.startswith(SAID)]
    return list(zip((status for _, status, _ in ends), lines, strict=True))


def test_no_verb_imports_anything_large_to_say_that_a_path_is_wrong(tmp_path: Path) -> None:
    asked = [_words(verb, tmp_path / "none") for verb in VERBS]

    told = _told(asked, LARGE)

    for words, (status, line) in zip(asked, told, strict=True):
        assert status == 2, words
        assert f"{tmp_path}/none" in line, words


def test_no_verb_imports_anything_large_to_say_that_there_is_no_java(tmp_path: Path) -> None:
    tables = [value for value in vars(catalog).values() if isinstance(value, catalog.Table)]
    for table in tables:
        log = tmp_path / table.name / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020d}.json").write_text('{"add": {}}\n')
    of_spark = [
        verb for verb, command in VERBS.items() if command.extra and not command.may_spare_spark
    ]
    environment = {"PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}

    told = _told([_words(verb, tmp_path) for verb in of_spark], LARGE, environment)

    assert len(of_spark) > 20
    for verb, (status, line) in zip(of_spark, told, strict=True):
        assert (status, line[:31]) == (2, "kafka-segments: no `java` in PA"), verb


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    rows = {
        "topic": ["t"],
        "cluster": [""],
        "vanished_at": pa.array([None], pa.timestamp("us", "UTC")),
    }
    for table in (catalog.SEGMENTS, catalog.LOGS):
        write_deltalake(str(tmp_path / "wh" / table.name), pa.table(rows))
    for table in (catalog.RETENTION_PLANS, catalog.MIGRATION_PLANS):
        write_deltalake(str(tmp_path / "wh" / table.name), pa.table({"plan_id": ["q"]}))
    return tmp_path / "wh"


def test_what_small_tables_tell_is_told_without_spark_and_without_compiled_code(
    warehouse: Path, log_dir: Path, tmp_path: Path
) -> None:
    kept = ["--warehouse", str(warehouse)]
    planned = [verb for verb, command in VERBS.items() if _takes(command, "plan_id")]
    asked = [
        *([*verb.split(), "--plan", "p", *kept] for verb in planned),
        ["lag", *kept],
        ["recovery", "apply", str(tmp_path)],
        ["recovery", "rollback", str(tmp_path)],
        ["build", "--source", str(log_dir), "--warehouse", str(tmp_path / "new"), "--dry-run"],
    ]

    told = _told(asked, SLOW)

    assert len(planned) == 7
    assert [status for status, _ in told] == [2] * (len(asked) - 1) + [0]
    assert told[-1][1].startswith("would read ")


def _takes(command: click.Command, name: str) -> bool:
    return any(param.name == name and param.required for param in command.params)
