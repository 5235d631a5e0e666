"""The log of a Delta table by its names: its last version, and what is left of one never made."""

from pathlib import Path

import pytest

from kafka_segments.files.delta.log import last_version, remove_log_without_commit


@pytest.mark.parametrize(
    ("names", "version", "is_kept"),
    [
        (["_staged_commits"], None, False),
        ([f".{0:020d}.json.1f.tmp", "_staged_commits"], None, False),
        ([f"{0:020d}.json", f"{1:020d}.json", f"{1:020d}.crc"], 1, True),
        ([f"{10:020d}.checkpoint.parquet"], 10, True),
    ],
)
def test_only_a_log_of_no_commit_is_removed(
    tmp_path: Path, names: list[str], version: int | None, is_kept: bool
) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    for name in names:
        (log / name).touch()

    found = last_version(str(tmp_path))
    remove_log_without_commit(str(tmp_path))

    assert (found, log.exists()) == (version, is_kept)


def test_no_log_is_no_version_and_nothing_to_remove(tmp_path: Path) -> None:
    remove_log_without_commit(str(tmp_path))

    assert last_version(str(tmp_path)) is None
