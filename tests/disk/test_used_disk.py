"""The walk of a disk counts what ``du`` counts, whatever lies there."""

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.files.folders import used_disk
from kafka_segments.files.folders.used_disk import walk_disk

NAMES = [
    "t-0",
    "__consumer_offsets-12",
    "t-1.0123456789abcdef0123456789abcdef-delete",
    "node-1",
    "lost+found",
    "remote-log-index-cache",
    "a\nb-3",
    "\udcff-0",
]
FILES = ["00000000000000000000.log", "00000000000000000007.index", "meta.properties", "\udcfe"]


def _du(*roots: Path) -> int:
    done = subprocess.run(
        ["du", "--block-size=1", "--summarize", "--total", *roots],
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    return int(done.stdout.split(b"\n")[-2].split()[0])


def _counted(*roots: Path) -> int:
    return sum(
        folder.used_bytes + sum(file.used_bytes for file in folder.files)
        for folder in walk_disk(map(str, roots))
    )


def _draw(folder: Path, rng: random.Random, others: list[Path], depth: int = 0) -> None:
    """Fill a folder: whole and sparse files, second names of files, links, folders."""
    folder.mkdir()
    for name in rng.sample(FILES, rng.randrange(len(FILES) + 1)):
        file = folder / name
        kind = rng.randrange(5)
        if kind == 0 and others:
            file.hardlink_to(rng.choice(others))
        elif kind == 1:
            file.symlink_to(rng.choice([*others, folder, Path("/nowhere")]))
        elif kind == 2:
            with file.open("wb") as sparse:
                sparse.truncate(10_485_760)
                sparse.seek(rng.randrange(10_485_000))
                sparse.write(b"x")
            others.append(file)
        else:
            file.write_bytes(bytes(rng.randrange(20_000)))
            others.append(file)
    for name in rng.sample(NAMES, rng.randrange(4)) if depth < 3 else ():
        _draw(folder / name, rng, others, depth + 1)


@pytest.mark.parametrize("seed", range(20))
def test_all_bytes_are_those_of_du(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    _draw(tmp_path / "a", rng, [])
    _draw(tmp_path / "b", rng, [])

    assert _counted(tmp_path / "a") == _du(tmp_path / "a")
    assert _counted(tmp_path / "a", tmp_path / "b") == _du(tmp_path / "a", tmp_path / "b")
    nested = [tmp_path, tmp_path / "a"]
    assert _counted(*nested) == _du(*nested)


def test_a_file_with_two_names_counts_once_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(bytes(5000))
    (tmp_path / "two").hardlink_to(tmp_path / "one")

    (folder,) = walk_disk([str(tmp_path)])

    assert sorted(file.used_bytes for file in folder.files) == [0, 8192]
    assert all(file.is_shared for file in folder.files)


def _failing(path: Path, error: OSError) -> Callable[[str], Any]:
    scandir = os.scandir

    def fail(place: str) -> Any:
        if Path(place) == path:
            raise error
        return scandir(place)

    return fail


def _problems(root: Path) -> Iterator[str]:
    return (folder.problem for folder in walk_disk([str(root)]) if folder.problem)


def test_a_folder_that_may_not_be_read_is_a_problem_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("t-0", "t-1"):
        (tmp_path / name).mkdir()
    refused = PermissionError(13, "Permission denied", str(tmp_path / "t-0"))
    monkeypatch.setattr(used_disk.os, "scandir", _failing(tmp_path / "t-0", refused))

    found = {folder.path: folder.problem for folder in walk_disk([str(tmp_path)])}

    assert found[""] is None
    assert found["t-1"] is None
    assert "this user may not read it" in str(found["t-0"])


def test_a_folder_that_goes_meanwhile_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t-0").mkdir()
    gone = FileNotFoundError(2, "No such file or directory")
    monkeypatch.setattr(used_disk.os, "scandir", _failing(tmp_path / "t-0", gone))

    assert not list(_problems(tmp_path))
