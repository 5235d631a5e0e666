"""Submitted jobs run on this machine as the commands do."""

from pathlib import Path

from kafka_segments.spark.session import _LOCAL

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
