"""Submitted jobs run on this machine as the commands do."""

from pathlib import Path

import pytest

from kafka_segments.commands.shared import describe_failure
from kafka_segments.errors import UsageError
from kafka_segments.spark.session import _LOCAL, spark_session

ROOT = Path(__file__).resolve().parents[2]


def test_submitted_jobs_have_the_settings_of_the_commands_own_session() -> None:
    text = (ROOT / "conf" / "spark" / "spark-defaults.conf").read_text("utf-8")
    given = dict(line.split(None, 1) for line in text.splitlines() if line and line[0] != "#")
    by_machine = {"spark.sql.shuffle.partitions", _LISTING}
    progress = "spark.ui.showConsoleProgress"  # spark-submit shows none unless asked

    assert given.keys() == _LOCAL.keys() - {progress}
    assert {
        key: value
        for key, value in given.items()
        if key not in by_machine and not str(_LOCAL[key]).startswith(value)
    } == {}


_LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


def test_a_spark_connect_server_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")

    with (
        pytest.raises(UsageError, match="commands do not run over Spark Connect"),
        spark_session("test", root=ROOT),
    ):
        pass


def test_a_failure_of_spark_is_told_by_its_last_cause() -> None:
    lines = (
        "An error occurred while calling o1.save.",
        ": org.apache.spark.SparkException: Job aborted",
        "\tat a.b(c)",
        "Caused by: java.io.IOException: No space left on device",
        "\tat d.e(f)",
    )

    told = describe_failure(RuntimeError("\n".join(lines)))

    assert told == "java.io.IOException: No space left on device (--verbose shows all)"
