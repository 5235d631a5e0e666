"""Folders of what a process needs for a while: gone when it ends, or later if it was killed."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from kafka_segments.files.storage import scratch


def _last_act(program: str, folder: Path) -> str:
    """Run a program whose temporary folder is ``folder``; return what it prints."""
    head = "from kafka_segments.files.storage.scratch import scratch_folder\n"
    return subprocess.run(
        [sys.executable, "-c", head + program],
        env={"TMPDIR": str(folder), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_it_lies_where_tmpdir_says_and_is_gone_when_its_process_ends(tmp_path: Path) -> None:
    said = _last_act(
        "folder = scratch_folder()\n"
        "(folder / 'spark').mkdir()\n"
        "(folder / 'spark' / 'x').touch()\n"
        "print(folder.parent, folder == scratch_folder())\n",
        tmp_path,
    )

    assert said == f"{tmp_path} True\n"
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_forked_leaves_it(tmp_path: Path) -> None:
    said = _last_act(
        "import os, sys\n"
        "folder = scratch_folder()\n"
        "if not os.fork():\n    sys.exit()\n"
        "os.wait()\n"
        "print(folder.is_dir())\n",
        tmp_path,
    )

    assert said == "True\n"
    assert list(tmp_path.iterdir()) == []


def test_what_killed_processes_left_goes_when_it_is_old(tmp_path: Path) -> None:
    left = "import os\nprint(scratch_folder(), flush=True)\nos._exit(9)\n"
    for name in ("old", "young"):
        done = subprocess.run(
            [sys.executable, "-c", f"from {scratch.__name__} import scratch_folder\n{left}"],
            env={"TMPDIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        Path(done.stdout.strip()).rename(tmp_path / f"ks-{name}")
    for name in ("ks-others", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "ks-link").symlink_to("other")
    os.utime(tmp_path / "ks-old" / "kafka-segments.owner", (5, 5))

    lives = (
        "import os\nfolder = scratch_folder()\n"
        "os.utime(folder / 'kafka-segments.owner', (5, 5))\n"
        "from kafka_segments.files.storage.scratch import remove_left\n"
        "remove_left(folder.parent, before=1e10)\n"
        "print(folder.is_dir())\n"
    )
    scratch.remove_left(tmp_path, before=100)

    names = ["ks-link", "ks-others", "ks-young", "other"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert _last_act(lives, tmp_path) == "True\n"
    names.remove("ks-young")
    assert sorted(path.name for path in tmp_path.iterdir()) == names


KILLED = {
    "in a folder below another": (
        "from kafka_segments.files.storage.scratch import scratch_below\n"
        "with scratch_below(folder) as made:\n    (made / 'x').touch()\n    os._exit(9)\n"
    ),
    "with a copy of a table's log": (
        "from kafka_segments.files.delta import rows\n"
        "rows.DeltaTable = lambda copy: os._exit(9)\n"
        "rows.open_table(str(folder / 'table [x]'))\n"
    ),
}


@pytest.mark.parametrize("killed", KILLED)
def test_what_a_killed_process_left_is_known_as_ours(tmp_path: Path, killed: str) -> None:
    write_deltalake(str(tmp_path / "table"), pa.table({"id": [1]}))
    (tmp_path / "table").rename(tmp_path / "table [x]")  # a name that deltalake does not take
    head = f"import os\nfrom pathlib import Path\nfolder = Path({str(tmp_path)!r})\n"

    done = subprocess.run(
        [sys.executable, "-c", head + KILLED[killed]],
        env={"TMPDIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
        check=False,
    )

    assert done.returncode == 9
    assert len(list(tmp_path.iterdir())) == 2
    scratch.remove_left(tmp_path, before=1e10)
    assert [path.name for path in tmp_path.iterdir()] == ["table [x]"]


def test_a_folder_below_another_is_gone_at_its_end_and_old_left_ones_at_its_beginning(
    tmp_path: Path,
) -> None:
    left = tmp_path / "ks-left"
    left.mkdir()
    (left / "kafka-segments.owner").touch()
    os.utime(left / "kafka-segments.owner", (5, 5))

    with scratch.scratch_below(tmp_path) as made:
        assert list(tmp_path.iterdir()) == [made]
        scratch.remove_left(tmp_path, before=1e10)
        assert made.is_dir()

    assert list(tmp_path.iterdir()) == []
