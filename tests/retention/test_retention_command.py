"""The verb retention: subcommands, a bare call that decides, and what it refuses."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_segments.verbs.judge.retention.command import retention
from kafka_segments.verbs.judge.roll.command import roll


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A warehouse as far as the names of its tables tell."""
    for name in ("segments", "logs"):
        log = tmp_path / "wh" / name / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020d}.json").write_text("{}\n")
    return tmp_path / "wh"


def _refused(*arguments: object) -> str:
    done = CliRunner().invoke(retention, list(map(str, arguments)))
    assert done.exit_code == 2
    return done.stderr.splitlines()[-1]


def test_the_group_lists_its_subcommands_and_a_bare_call_decides() -> None:
    listed = CliRunner().invoke(retention, ["--help"]).stdout

    assert all(f"\n  {verb} " in listed for verb in ("apply", "decide", "explain", "plan"))
    assert _refused() == "Error: Missing option '--warehouse'."
    assert _refused("--what-if", "x") == "Error: Missing option '--warehouse'."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "a=1"], "kafka-segments: unknown setting a"),
        (["--what-if", "segment_bytes=1"], "kafka-segments: unknown setting segment_bytes"),
        (["--kafka-version", "4"], "kafka-segments: --kafka-version 4: a release such as 4.3"),
        (["--kafka-version", "0.7.2"], "kafka-segments: --kafka-version 0.7.2: 0.8 and later"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    arguments: list[str], message: str, warehouse: Path
) -> None:
    assert _refused("--warehouse", warehouse, *arguments).startswith(message)


def test_files_that_are_not_what_they_should_be_are_named(tmp_path: Path, warehouse: Path) -> None:
    file = tmp_path / "f"
    file.write_text("x", "utf-8")

    for option in ("--topic-configs", "--remote-offsets"):
        line = _refused("--warehouse", warehouse, option, file)
        assert line.startswith(f"kafka-segments: {file}: 'x'")
    assert _refused("explain", "orders", "--warehouse", warehouse) == (
        "kafka-segments: orders: topic-partition expected, such as orders-0"
    )


def test_how_much_the_files_of_kafka_configs_tell_of_is_said(
    tmp_path: Path, warehouse: Path
) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    files[0].write_text("Dynamic configs for topic t are:\n", "utf-8")
    files[1].write_text(
        "Dynamic configs for topic u are:\nDefault configs for brokers in the cluster are:\n"
        "  log.retention.ms=5\n",
        "utf-8",
    )
    given = [word for file in files for word in ("--topic-configs", str(file))]

    for verb in (retention, roll):  # --what-if is read after the files
        done = CliRunner().invoke(verb, ["--warehouse", str(warehouse), *given, "--what-if", "x"])
        assert done.stderr.splitlines() == [
            "settings of 2 topics and 0 brokers and of the cluster read from"
            f" {files[0]}, {files[1]}",
            "kafka-segments: --what-if x: key=value expected",
        ]


def test_a_setting_given_twice_with_two_values_is_refused(warehouse: Path) -> None:
    given = ["--set", "retention.ms=1", "--set", "retention_ms=2"]

    assert _refused("--warehouse", warehouse, *given) == (
        "kafka-segments: --set gives retention_ms twice, 1 and 2: leave only the one that is meant"
    )
