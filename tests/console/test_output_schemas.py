"""The schemas of what verbs print as JSON: one for each verb, kept by those that print."""

import csv
import io
import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from kafka_segments.cli import cli
from kafka_segments.engine.tables.schemas import newest_versions
from kafka_segments.verbs.find.lag.command import lag
from support.spark.connect_client import run_verb
from support.verbs.every_verb import every_verb
from support.verbs.output_schemas import forms_of, misfits, schema_of

FOLDER = Path(__file__).resolve().parents[2] / "schemas" / "output"
VERBS = [verb for verb in every_verb() if verb != "shell"]
AT_ONCE = [
    "triage {node}",
    "disk {node}",
    "disk {node} --rows topics",
    "disk {node} --rows folders",
    "disk {node} --rows disks",
    "cleaner {node}",
    "cleaner {node} --check records",
    "records {node}",
    "records {node} --key none",
    "recovery forecast --source {node}",
    "recovery forecast --source {node} --rows logs",
    "recovery kit --source {node} --out {new}",
]
"""Calls of verbs that need no session."""


def test_each_verb_that_prints_rows_has_a_schema_and_no_other_has() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(
        verb.replace(" ", "-") for verb in VERBS
    )


@pytest.mark.parametrize("verb", VERBS)
def test_a_schema_is_sound_names_itself_and_says_what_each_field_is(verb: str) -> None:
    schema = schema_of(verb)

    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:kafka-segments:output:{verb.replace(' ', '-')}"
    for form in forms_of(schema):
        fields = form.get("properties", {})
        assert form.get("required", []) == list(fields)
        assert [name for name, field in fields.items() if not field.get("description")] == []


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_shows_its_schema_whatever_else_it_needs(verb: str) -> None:
    shown = CliRunner().invoke(cli, [*verb.split(), "--schema"])

    assert (shown.exit_code, shown.stderr) == (0, "")
    assert json.loads(shown.stdout) == schema_of(verb)


def test_a_job_shows_the_schema_of_its_verb() -> None:
    shown = CliRunner().invoke(lag, ["--schema"], prog_name="measure_lag.py")

    assert json.loads(shown.stdout) == schema_of("lag")


def test_what_a_schema_lacks_is_told() -> None:
    row = dict.fromkeys(schema_of("compact")["required"], 1)

    told = misfits("compact", [json.dumps({**row, "path": "a", "action": "b", "new": 1})])

    assert told == ["$: Additional properties are not allowed ('new' was unexpected)"]
    assert misfits("compact", [json.dumps({"path": "a"})])


@pytest.mark.parametrize("line", AT_ONCE)
def test_rows_are_what_the_schema_says(line: str, node: Path, tmp_path: Path) -> None:
    log = next(node.glob("b/orders-?"))
    shutil.copytree(log, log.with_name(f"{log.name}.{'0' * 32}-stray"))
    words = shlex.split(line.format(node=node, new=tmp_path / "new"))
    verb = max((verb for verb in VERBS if line.startswith(f"{verb} ")), key=len)

    done = run_verb([*words, "--output", "json", "--quiet"])

    assert done.status in (0, 1), done.err
    rows = done.out.splitlines()
    assert rows
    assert misfits(verb, rows) == []


def test_findings_of_recovery_and_of_the_start_have_the_same_fields(node: Path) -> None:
    segment = max(node.glob("b/orders-?/*.log"), key=lambda path: path.stat().st_size)
    segment.write_bytes(segment.read_bytes()[:-7])
    (node / "a" / "recovery-point-offset-checkpoint").write_text("x\n")

    words = ["recovery", "forecast", "--source", str(node), "--rows", "findings", "--output"]
    rows = run_verb([*words, "json"]).out.splitlines()
    names, *lines = csv.reader(io.StringIO(run_verb([*words, "csv"]).out))

    assert {json.loads(row)["consequence"] for row in rows} >= {"cut", "the broker ends"}
    assert misfits("recovery forecast", rows) == []
    assert {len(line) for line in lines} == {len(names)}


def test_lists_of_a_forecast_in_csv_are_those_of_json(node: Path) -> None:
    (node / "b" / "replication-offset-checkpoint").write_text("x\n")
    words = ["recovery", "forecast", "--source", str(node), "--rows", "options", "--output"]

    rows = [json.loads(line) for line in run_verb([*words, "json"]).out.splitlines()]
    read = csv.DictReader(io.StringIO(run_verb([*words, "csv"]).out, newline=""))

    lists = ("without", "drops", "not_known")
    assert any(row[name] for row in rows for name in lists)
    assert [[json.loads(row[name]) for name in lists] for row in read] == [
        [row[name] for name in lists] for row in rows
    ]


KEPT = {
    "audit": ("index_audits",),
    "build": ("segments",),
    "divergence compare": ("divergences",),
    "internals tier": ("remote_segments",),
    "migrate inventory": ("migration_inventory", "migration_obstacles"),
    "migrate plan": ("migration_plans",),
    "retention decide": ("retention_decisions",),
    "retention plan": ("retention_plans",),
    "roll": ("roll_decisions",),
}
"""Verbs that print rows as they are kept in a table."""
NOT_PRINTED = {"producers", "transaction_steps"}  # of segments: long arrays for later runs


@pytest.mark.parametrize(("verb", "table"), [(v, t) for v, kept in KEPT.items() for t in kept])
def test_what_a_table_keeps_of_a_verb_is_in_its_schema_with_its_nulls(
    verb: str, table: str
) -> None:
    name = f"{table}.v{newest_versions()[table]}.json"
    columns = json.loads((FOLDER.parent / name).read_text("utf-8"))["fields"]

    def lacks(form: dict[str, Any]) -> list[str]:
        fields = form["properties"]
        return [
            column["name"]
            for column in columns
            if column["name"] not in NOT_PRINTED
            and (
                column["name"] not in fields
                or (column["nullable"] and "null" not in fields[column["name"]]["type"])
            )
        ]

    assert [] in map(lacks, forms_of(schema_of(verb)))
