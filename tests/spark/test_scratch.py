"""The folder of what a session needs for a while: one a process, gone when it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_segments.engine.spark import scratch


def _last_act(program: str, folder: Path) -> str:
    """Run a program whose temporary folder is ``folder``; return what it prints."""
    head = "from kafka_segments.engine.spark.scratch import scratch_folder\n"
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
        "from kafka_segments.engine.spark.scratch import remove_left\n"
        "remove_left(folder.parent, before=1e10)\n"
        "print(folder.is_dir())\n"
    )
    scratch.remove_left(tmp_path, before=100)

    names = ["ks-link", "ks-others", "ks-young", "other"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert _last_act(lives, tmp_path) == "True\n"
    names.remove("ks-young")
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@pytest.mark.parametrize(("length", "is_short"), [(60, True), (61, False)])
def test_where_its_path_is_too_long_there_are_no_sockets_in_it(length: int, is_short: bool) -> None:
    folder = Path("/" + "f" * (length - 1))

    settings = scratch.scratch_settings(folder)

    assert settings["spark.sql.warehouse.dir"] == f"file://{folder}/warehouse"
    key = "spark.python.unix.domain.socket.enabled"
    assert settings.get(key) == (None if is_short else "false")
