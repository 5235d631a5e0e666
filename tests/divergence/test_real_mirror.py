"""What is told of a mirror that a real MirrorMaker 2 wrote, beside what consumers read of both."""

import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.kafka.mirror_maker import PREFIX

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parents[1] / "golden" / "mirror.tar.xz"


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mirror")
    with tarfile.open(GOLDEN) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _told(disks: Path) -> list[dict[str, Any]]:
    places = ["--source", str(disks / "source"), "--mirror", str(disks / "mirror")]
    asked = ["divergence", "mirror", *places, "--prefix", PREFIX, "--output", "json"]
    done = CliRunner().invoke(cli, asked, catch_exceptions=False)
    assert done.exit_code == 1, done.output  # what was mirrored twice is a finding
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_a_restart_mirrored_twice_is_told_and_nothing_else(
    spark: SparkSession, disks: Path
) -> None:
    rows = _told(disks)

    answers = json.loads((disks / "answers.json").read_text())
    for log, values in answers["source"].items():
        mirrored = answers["mirror"][log]
        told = Counter[str]()
        for row in rows:
            if f"{row['topic']}-{row['partition']}" == log:
                told[row["kind"]] += row["records"]
        twice = Counter(mirrored) - Counter(values)
        assert told["mirrored"] == len(values)
        assert told["duplicated"] == twice.total() > 0
        assert set(told) <= {"mirrored", "duplicated", "aborted"}
    aborted = [row["records"] for row in rows if row["kind"] == "aborted"]
    assert aborted == [12] * 6  # two transactions of six, three times


def test_the_offsets_of_both_translate_record_by_record(spark: SparkSession, disks: Path) -> None:
    answers = json.loads((disks / "answers.json").read_text())

    for row in _told(disks):
        if row["kind"] != "mirrored" or row["topic"] != "orders":
            continue  # a log of transactions has offsets of markers between its records
        log = f"{row['topic']}-{row['partition']}"
        own = answers["source"][log][row["from_offset"] : row["until_offset"]]
        assert own == answers["mirror"][log][row["mirror_from"] : row["mirror_until"]]
