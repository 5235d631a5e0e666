"""Submitted jobs run on this machine as the commands do."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from kafka_segments.console.options import describe_failure
from kafka_segments.engine.spark.jvm_end import told_by_status
from kafka_segments.engine.spark.session import _LOCAL, suit_small_data

ROOT = Path(__file__).resolve().parents[2]
_SHUFFLE = "spark.sql.shuffle.partitions"


def test_submitted_jobs_have_the_settings_of_the_commands_own_session() -> None:
    text = (ROOT / "conf" / "spark" / "spark-defaults.conf").read_text("utf-8")
    given = dict(line.split(None, 1) for line in text.splitlines() if line and line[0] != "#")
    by_machine = {_SHUFFLE, _LISTING}
    progress = "spark.ui.showConsoleProgress"  # spark-submit shows none unless asked

    assert given.keys() == _LOCAL.keys() - {progress}
    assert {
        key: value
        for key, value in given.items()
        if key not in by_machine and not str(_LOCAL[key]).startswith(value)
    } == {}


_LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


class _Session(SimpleNamespace):
    __hash__ = object.__hash__


@pytest.mark.parametrize(
    ("cores", "given", "shuffle"),
    [(2, {}, "16"), (24, {}, "48"), (500, {}, "200"), (4, {_SHUFFLE: "3"}, "3")],
)
def test_submitted_jobs_shuffle_by_their_cores_unless_the_user_says_how(
    cores: int, given: dict[str, str], shuffle: str
) -> None:
    settings = dict(given)
    plan = [(f"== Physical Plan ==\n*(1) Range (0, 1, step=1, splits={cores})\n",)]
    conf = SimpleNamespace(get=settings.get, set=settings.__setitem__)
    spark = _Session(sql=lambda _: SimpleNamespace(collect=lambda: plan), conf=conf)

    suit_small_data(spark)  # type: ignore[arg-type]

    assert settings[_SHUFFLE] == shuffle
    assert settings["spark.databricks.delta.snapshotPartitions"] == "4"


@pytest.mark.parametrize(
    ("status", "report", "says"),
    [
        (52, "", "Spark's JVM ended: out of memory, status 52: give it more by PYSPARK_SUBMIT"),
        (-9, "", "ended: SIGKILL, as the kernel ends what it has no memory for: see `dmesg`"),
        (137, "", "ended: SIGKILL"),
        (-15, "", "ended: SIGTERM: who sent it knows why"),
        (1, "", "ended: status 1: the lines above say why"),
        (
            -6,
            "#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n"
            "#  SIGSEGV (0xb) at pc=0x0007\n# Problematic frame:\n",
            "ended: it crashed, SIGABRT: SIGSEGV (0xb) at pc=0x0007: ",
        ),
    ],
)
def test_the_end_of_a_jvm_is_told_in_one_line(
    tmp_path: Path, status: int, report: str, says: str
) -> None:
    crash = tmp_path / "hs_err_pid7.log"
    if report:
        crash.write_text(report)

    told = str(told_by_status(status, crash))

    assert says in told
    assert told.endswith("what was done is kept, run it again")
    assert "\n" not in told


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


def test_a_program_that_cannot_be_run_is_named() -> None:
    error = RuntimeError(
        "An error occurred while calling o1.collect.\n: java.io.IOException: Cannot run program"
        ' "/x": error=13, Permission denied\n\tat java.lang.ProcessBuilder.start\nCaused by:'
        " java.io.IOException: error=13, Permission denied\n\tat java.lang.ProcessImpl"
    )

    assert describe_failure(error) == (
        'java.io.IOException: Cannot run program "/x": error=13, Permission denied (--verbose'
        " shows all)"
    )
