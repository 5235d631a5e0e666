"""Log directories that change while they are listed: what is gone is told, the rest is read."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_segments.files.node import log_dirs
from kafka_segments.files.node.log_dirs import find_log_dirs
from kafka_segments.files.storage.local_folder import FileEntry


@pytest.fixture
def disks(synthetic: Path, tmp_path: Path) -> Path:
    """Two log directories of two logs, and a folder without logs beside them."""
    for name in ("d1/t-0", "d1/u-0", "d2/v-0", "d2/w-0"):
        shutil.copytree(synthetic / "v2-one-record" / "t-0", tmp_path / "disks" / name)
    (tmp_path / "disks" / "lost+found").mkdir()
    return tmp_path / "disks"


def _gone_before(path: Path) -> Callable[..., list[FileEntry]]:
    """Return a listing before which a running broker removes a folder."""
    plain = log_dirs.entries_of

    def entries_of(source: str, relative_path: str, **options: bool) -> list[FileEntry]:
        if Path(source, relative_path) == path:
            shutil.rmtree(path, ignore_errors=True)
        return plain(source, relative_path, **options)

    return entries_of


@pytest.mark.parametrize(
    ("gone", "logs", "problem"),
    [
        ("d1/t-0", ["u-0", "v-0", "w-0"], "t-0: "),
        ("d1", ["v-0", "w-0"], "cannot be listed: "),
        ("lost+found", ["t-0", "u-0", "v-0", "w-0"], "cannot be listed: "),
    ],
)
def test_what_goes_while_it_is_listed_is_told_and_the_rest_is_read(
    disks: Path, monkeypatch: pytest.MonkeyPatch, gone: str, logs: list[str], problem: str
) -> None:
    monkeypatch.setattr(log_dirs, "entries_of", _gone_before(disks / gone))

    found = find_log_dirs([str(disks)])

    assert sorted(log.folder for one in found for log in one.logs) == logs
    problems = [problem for one in found for problem in one.problems]
    assert len(problems) == 1
    assert problems[0].startswith(problem)
    assert "No such file" in problems[0]


def test_a_file_that_goes_is_a_problem_of_its_log_alone(
    disks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = disks / "d1" / "t-0" / f"{0:020d}.txnindex"
    index.write_bytes(bytes(34))
    plain = log_dirs.is_txn_index_refused

    def refused(*arguments: object) -> bool:
        index.unlink()
        return plain(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(log_dirs, "is_txn_index_refused", refused)

    found = find_log_dirs([str(disks)])

    assert sorted(log.folder for one in found for log in one.logs) == ["u-0", "v-0", "w-0"]
    assert [problem.partition(":")[0] for one in found for problem in one.problems] == ["t-0"]
