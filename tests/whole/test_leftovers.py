"""A session of its own in which every verb runs: what it says on stderr, and what it leaves."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from every_verb import CALLS, World
from processes import MARK, left_in_the_end

pytestmark = [pytest.mark.slow, pytest.mark.spark]
_STATUS = re.compile(r"status (\d+), [\d.]+ s")


def test_after_every_verb_no_process_and_no_temporary_file_is_left(
    spark: SparkSession, cluster: Path, synthetic: Path, tmp_path: Path
) -> None:
    world = World(spark, cluster, synthetic, tmp_path / "world")
    lines = [shlex.join([*world.call(verb), "--output", "json", "--quiet"]) for verb in CALLS]
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()

    done = subprocess.run(
        [sys.executable, "-m", "kafka_segments", "shell"],
        input="\n".join(lines),
        env={**os.environ, MARK: str(tmp_path), "TMPDIR": str(temporary)},
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )

    said = done.stderr.splitlines()
    assert [line for line in said if not _STATUS.fullmatch(line)] == []
    assert {_STATUS.fullmatch(line)[1] for line in said} <= {"0", "1"}  # type: ignore[index]
    assert len(said) == len(CALLS)
    assert all(line.startswith("{") for line in done.stdout.splitlines())
    assert left_in_the_end(str(tmp_path)) == []
    assert [*here.rglob("*"), *temporary.rglob("*")] == []
