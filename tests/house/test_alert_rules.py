"""The alert rules for Prometheus: each metric exists, and the docs have the same."""

import importlib
import re
import shutil
import subprocess

import pytest
import yaml

from kafka_segments.console import prometheus
from support.house.local_airflow import ROOT

FOLDER = ROOT / "conf" / "prometheus"
FIGURES = (
    "find.triage",
    "find.cleaner",
    "find.disk",
    "find.lag",
    "judge.retention",
    "copies.backup",
)
_PREFIX = "kafka_segments_"


def _rules() -> list[dict[str, str]]:
    text = (FOLDER / "kafka-segments.rules.yml").read_text("utf-8")
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def test_each_metric_of_the_rules_is_one_that_verbs_print() -> None:
    modules = [
        importlib.import_module(f"kafka_segments.verbs.{verb}.report_figures") for verb in FIGURES
    ]
    metrics = {
        f"{_PREFIX}{value.name}{end}"
        for module in (prometheus, *modules)
        for value in vars(module).values()
        if isinstance(value, prometheus.Metric)
        for end in ("", "_not_known")
    }

    named = {name for rule in _rules() for name in re.findall(rf"{_PREFIX}\w+", rule["expr"])}
    assert len(named) == len(_rules())
    assert named <= metrics


def test_the_docs_have_the_same_rules() -> None:
    page = (ROOT / "docs" / "machines.md").read_text("utf-8")
    table = re.findall(r"^\| `(Kafka\w+)` \| `([^`]+)` \|", page, re.MULTILINE)

    assert table == [(rule["alert"], rule["expr"]) for rule in _rules()]


def test_prometheus_fires_them_as_its_own_tests_say() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool, of the package prometheus, is not there")
    done = subprocess.run(
        [promtool, "test", "rules", "kafka-segments.test.yml"],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
