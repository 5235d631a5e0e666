"""The core alone reads directories; what else is asked of it names the extra that brings it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

import click
import pytest

import kafka_segments
from kafka_segments import extras
from kafka_segments.cli import cli
from kafka_segments.console.strict_options import Command
from kafka_segments.extras import EXTRAS, has_extra, require_extra
from support.verbs.every_verb import CALLS, every_verb

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {*(module for modules in EXTRAS.values() for module in modules), "py4j", "scipy"}
NAME = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[([\w,-]+)\])?")
LIGHT = (
    "triage {node}",
    "disk {node}",
    "cleaner {node} --check records",
    "records {node}",
    "recovery forecast --source {node}",
    "recovery kit --source {node} --out {kit}",
    "recovery kit --source {node} --out {second} --engine auto --threads 1",
    "recovery apply {kit}",
    "recovery rollback {kit}",
)
REFUSED = {
    "disk {node} --warehouse {node}": "spark",
    "recovery forecast --warehouse {node}": "spark",
    "recovery forecast --source s3://bucket/logs": "stores",
    "recovery kit --source {node} --out {second} --engine spark": "spark",
}


class Answer(NamedTuple):
    status: int
    said: str
    errors: str


def _command(words: str) -> Command:
    command: click.Command = cli
    for word in words.split():
        assert isinstance(command, click.Group)
        command = command.commands[word]
    assert isinstance(command, Command)
    return command


@pytest.fixture(scope="module")
def answers(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """What every verb does in a process that has no package beyond the core's."""
    folder = tmp_path_factory.mktemp("core")
    for n, name in enumerate(("node", "other", "third"), 1):
        shutil.copytree(cluster / "disks" / f"node-{n}", folder / name)
    names = ("node", "other", "third", "kit", "second", "folder", "new", "old", "plan")
    named = {**{name: f"{folder}/{name}" for name in names}, "tables": f"--warehouse {folder}"}
    lines = {
        **{line: line for line in (*LIGHT, *REFUSED)},
        **{verb: f"{verb} {CALLS[verb]}" for verb in CALLS if _command(verb).extra is not None},
        "shell": "shell",
    }
    calls = [shlex.split(line.format(**named)) for line in lines.values()]
    done = subprocess.run(
        [sys.executable, "-m", "support.house.without_packages"],
        input=json.dumps(
            {"packages": sorted(HEAVY), "calls": calls, "names": kafka_segments.__all__}
        ),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "lib"), str(ROOT / "tests")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    names = {name: Answer(0, name, error) for name, error in told["names"].items()}
    return {**names, **dict(zip(lines, (Answer(*each) for each in told["calls"]), strict=True))}


@pytest.mark.parametrize("line", LIGHT)
def test_the_core_answers_what_needs_no_tables(line: str, answers: dict[str, Answer]) -> None:
    found = answers[line]

    assert found.status in (0, 1), found.errors
    assert found.said
    assert "Error" not in found.errors


@pytest.mark.parametrize(
    "verb", [verb for verb in every_verb() if _command(verb).extra is not None]
)
def test_every_other_verb_names_its_extra(verb: str, answers: dict[str, Answer]) -> None:
    extra = _command(verb).extra

    assert answers[verb].status == 2
    assert answers[verb].said == ""
    assert answers[verb].errors == (
        f"kafka-segments: {verb} needs the extra {extra}, and {EXTRAS[str(extra)][-1]} is not"
        f" installed: pip install 'kafka-segments[{extra}]'\n"
    )


@pytest.mark.parametrize("line", REFUSED)
def test_so_does_an_option_that_needs_more(line: str, answers: dict[str, Answer]) -> None:
    found = answers[line]

    assert (found.status, found.said) == (2, "")
    assert found.errors.count("\n") == 1
    assert f"pip install 'kafka-segments[{REFUSED[line]}]'" in found.errors


def test_a_notebook_has_what_needs_no_tables(answers: dict[str, Answer]) -> None:
    refused = {name: answers[name].errors for name in kafka_segments.__all__}

    assert {name for name, error in refused.items() if error} == {
        *("OpenWarehouse", "open", "register")
    }
    assert "pip install 'kafka-segments[spark]'" in refused["open"]


def test_the_core_is_what_reads_directories() -> None:
    light = {verb for verb in every_verb() if _command(verb).extra is None}

    assert light == {" ".join(line.split(" {")[0].split(" --")[0].split()) for line in LIGHT}


@cache
def _of_pyproject() -> dict[str, set[str]]:
    """The packages of each extra, those of the extras that it names among them; "": the core's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    listed = {"": project["dependencies"], **project["optional-dependencies"]}

    def packages(extra: str) -> set[str]:
        found: set[str] = set()
        for line in listed[extra]:
            match = NAME.match(line)
            assert match is not None, line
            name, others = match[1], match[2] or ""
            if name != project["name"]:
                found.add(name.lower())
            else:
                found.update(*map(packages, others.split(",")))
        return found

    return {extra: packages(extra) for extra in listed}


def test_pyproject_brings_the_modules_of_each_extra() -> None:
    brought_by = defaultdict(set)
    for module, names in packages_distributions().items():
        brought_by[module].update(name.lower().replace("_", "-") for name in names)

    for extra, modules in EXTRAS.items():
        by = {module: brought_by[module] & _of_pyproject()[extra] for module in modules}
        assert all(by.values()), by
        assert set().union(*by.values()) == _of_pyproject()[extra]
        assert not set().union(*by.values()) & _of_pyproject()[""]


def test_all_is_all_but_airflow_and_what_tests_need() -> None:
    brought = _of_pyproject()

    assert brought["all"] == set().union(
        *(brought[extra] for extra in brought if extra not in ("", "airflow", "dev"))
    )
    assert brought["all"] <= brought["dev"]


def test_what_is_imported_already_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(extras.EXTRAS, "one", ("json", "no_such_module_at_all"))
    monkeypatch.setitem(extras.EXTRAS, "two", ("json", "tomllib"))

    assert not has_extra("one")
    assert has_extra("two")
    with pytest.raises(kafka_segments.UsageError, match=r"pip install 'kafka-segments\[one\]'"):
        require_extra("one", "x")
    monkeypatch.setitem(sys.modules, "tomllib", None)
    assert not has_extra("two")
