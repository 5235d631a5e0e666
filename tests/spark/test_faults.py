"""Faults of disks: builds that end as if nothing had been, at the latest when run again."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from driver_process import build, leftovers, same_tables

TESTS = Path(__file__).resolve().parents[1]
OWN_MOUNTS = ("unshare", "--user", "--map-root-user", "--mount")


def test_a_full_disk_fails_by_name_and_with_room_all_is_as_on_an_empty_one(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    may_mount = shutil.which("unshare") and not subprocess.call([*OWN_MOUNTS, "true"])
    if not may_mount:
        pytest.skip("this machine lets nobody but root mount a disk of a given size")
    done = subprocess.run(
        [*OWN_MOUNTS, sys.executable, str(TESTS / "full_disk.py"), str(log_dir), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    build(spark, log_dir, tmp_path / "undisturbed")

    failures = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(failures) >= 3
    assert [line for line in failures if "No space left on device" not in line] == []
    assert same_tables(spark, tmp_path / "built", tmp_path / "undisturbed")
    assert leftovers(tmp_path / "built") == []
