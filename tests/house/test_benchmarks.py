"""Benchmarks are not run with the tests; what they take from the package is there all the same.

And what decides takes the rows that they make.
"""

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.derived.configs import with_topic_configs
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.settings import Settings
from kafka_segments.verbs.judge.retention.decide.decisions import decide_retention
from kafka_segments.verbs.judge.retention.decide.rules import RetentionRules
from kafka_segments.verbs.judge.retention.decide.what_if import TODAY, compare_retention
from kafka_segments.verbs.judge.roll.decide.rolls import decide_rolls
from kafka_segments.verbs.judge.roll.decide.rules import RollRules

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CHANGES = "setting string, _new_retention_ms long"


def _taken(file: Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of what a file takes from the package."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kafka_segments"):
            yield from ((node.module or "", alias.name) for alias in node.names)


@pytest.mark.parametrize("file", sorted(BENCHMARKS.glob("*.py")), ids=lambda file: file.stem)
def test_what_a_benchmark_takes_from_the_package_is_there(file: Path) -> None:
    for module, name in _taken(file):
        holder = importlib.import_module(module)
        if not hasattr(holder, name):
            importlib.import_module(f"{module}.{name}")


@pytest.mark.slow
def test_the_rows_that_benchmarks_make_are_decided(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    decisions, rolls = (importlib.import_module(name) for name in ("decisions", "rolls"))
    configs = with_topic_configs(spark, TopicConfigs.load(Settings(retention_ms=1)))
    now_ms, rules = decisions.NOW_MS, RetentionRules.of("4.3")
    segments = decisions.segments(spark, 20, a_log=10).transform(configs)
    assert segments.transform(decide_retention(now_ms=now_ms, rules=rules)).count() == 20
    changes = spark.createDataFrame([(TODAY, None), ("day", 1)], CHANGES)
    compare = compare_retention(now_ms=now_ms, rules=rules, changes=changes, keys=("retention_ms",))
    assert segments.transform(compare).count() == 1
    decide = decide_rolls(now_ms=rolls.NOW_MS, rules=RollRules())
    assert rolls.active_segments(spark, 20).transform(decide).count() == 20
