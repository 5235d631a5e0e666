"""Names of files and folders are data: not SQL, not HTML, not a shell's, not a way out."""

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.delta import Warehouse

UNRECOGNIZED = tables.UNRECOGNIZED_FILES
NAMES = (
    "x' OR '1'='1",
    'x"; DROP TABLE segments; --',
    "`x`",
    "<img src=x onerror=alert(1)>",
    "$(touch owned)",
    "a b\tc\nd",
    "%2e%2e%2fx",
    "${spark.app.id} {0} %s",
    "-rf",
    "..",
    "*",
    "\u202eback\u202c",
)


@pytest.fixture
def hostile(broker: Path, tmp_path: Path) -> Path:
    """A log directory of partitions with such names, each of the same segments."""
    for name in NAMES:
        shutil.copytree(broker / "logs" / "ct-two-partitions-0", tmp_path / "logs" / f"{name}-0")
    return tmp_path


def test_hostile_names_are_names(
    hostile: Path, broker: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hostile)
    logs = hostile / "logs"
    shutil.copytree(logs / "..-0", hostile / "elsewhere")
    (logs / "linked-0").symlink_to(hostile / "elsewhere")
    (logs / "loop").symlink_to(".")
    (logs / "up").symlink_to("..")
    (logs / "*-0" / f"{0:020d}.timeindex").symlink_to("../nowhere")
    Path(os.fsdecode(os.fsencode(logs) + b"/\xff-0")).mkdir()
    before = {path.name for path in hostile.iterdir()}
    warehouse = ["--warehouse", str(hostile / "warehouse")]
    source = ["--source", str(hostile / "logs")]

    for options in (["--follow-links", "--source", str(hostile / "elsewhere")], ["--full"]):
        _run("build", *source, *warehouse, "--index-dir", str(hostile / "indexes"), *options)
    _run("report", *warehouse, "--out", str(hostile / "report.html"))

    expected = {
        path.name: path.read_bytes()
        for path in (broker / "rebuilt" / "ct-two-partitions-0").iterdir()
        if path.suffix in (".index", ".timeindex")
    }
    for name in NAMES:
        folder = hostile / "indexes" / f"{name}-0"
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == expected
    built = Warehouse(spark, str(hostile / "warehouse"))
    rows = built.read(tables.SEGMENTS).where("vanished_at IS NULL")  # what is not followed may be
    topics = {row["topic"] for row in rows.select("topic").distinct().collect()}
    assert topics == {*NAMES, "linked"}
    assert rows.count() == len(topics) * len([*(logs / "..-0").glob("*.log")])
    unrecognized = {row["path"]: row["reason"] for row in built.read(UNRECOGNIZED).collect()}
    assert unrecognized == {
        f"{logs}/{name}": reason
        for name, reason in {
            "loop": f"a link, to {logs}: not followed; --follow-links does",
            "up": f"a link out of the source, to {hostile}: not followed; --follow-links does,"
            " with what it leads to as a source, too",
            "linked-0": f"a link out of the source, to {hostile}/elsewhere: not followed;"
            " --follow-links does, with what it leads to as a source, too",
            f"*-0/{0:020d}.timeindex": f"a link that leads nowhere: {logs}/nowhere is not there",
            "\\xff-0": "a folder; its name is no UTF-8, so nothing can be read by it; rename it",
        }.items()
    }
    assert "<img src=x" not in (hostile / "report.html").read_text("utf-8")
    made = {path.name for path in hostile.iterdir()} - before
    assert made == {"warehouse", "indexes", "report.html"}


def _run(*arguments: str) -> None:
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == (0 if arguments[0] == "report" else 1), done.output
