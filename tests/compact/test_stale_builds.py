"""What killed runs left among the tables of a warehouse."""

import os
from pathlib import Path

import pytest

from kafka_segments.files.storage.durable_files import temporary_name
from kafka_segments.verbs.change.compact.stale_builds import remove_unfinished

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize("is_dry", [False, True])
def test_temporary_files_go_once_they_are_a_day_old(tmp_path: Path, is_dry: bool) -> None:
    log = tmp_path / "tables" / "segments" / "_delta_log"
    log.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "tables" / "linked").symlink_to(elsewhere)
    old = [_left(folder, hours=25) for folder in (log.parents[1], log.parent, log)]
    kept = [_left(log, hours=23), _left(elsewhere, hours=25), log / f"{0:020d}.json"]
    kept[-1].touch()
    os.utime(kept[-1], (0, 0))

    found = remove_unfinished(str(tmp_path / "tables"), now_ms=NOW_MS, dry_run=is_dry)

    assert found == [str(path) for path in old]
    assert [path.exists() for path in old] == [is_dry] * 3
    assert all(path.exists() for path in kept)


def test_what_is_not_on_a_disk_is_left_to_its_store() -> None:
    assert remove_unfinished("s3://bucket/tables", now_ms=NOW_MS, dry_run=False) == []


def _left(folder: Path, *, hours: int) -> Path:
    path = Path(temporary_name(str(folder / "a.parquet")))
    path.touch()
    seconds = (NOW_MS - hours * HOUR_MS) / 1000
    os.utime(path, (seconds, seconds))
    return path
