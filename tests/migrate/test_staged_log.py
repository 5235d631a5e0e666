"""The swap of a log's folder: a kill at every step, and folders that are not as they were."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from site import getsitepackages
from typing import Any

import pytest

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes import folder_exchange
from kafka_segments.files.changes.backups import state_of
from kafka_segments.files.changes.manifests import write_manifest
from kafka_segments.verbs.change.migrate.staged_log import (
    FolderFiles,
    LogManifest,
    Side,
    StagedLog,
    check_put_back,
    check_put_in_place,
    log_state,
    manifest_of,
    put_back,
    put_in_place,
)

LIB = Path(__file__).resolve().parents[2] / "lib"
PATHS = os.pathsep.join([str(LIB), *getsitepackages()])
LOG, INDEX = f"{0:020d}.log", f"{0:020d}.index"
State = dict[str, tuple[bytes, int]]
# Ends the process at its n-th change of the file system, the swap among them.
KILLED = """
import os, sys
from pathlib import Path
from kafka_segments.verbs.change.migrate import staged_log as module

action, folder, root, step = sys.argv[1:]
steps = int(step)

def counted(function):
    def call(*arguments, **options):
        global steps
        if steps == 0:
            os._exit(9)
        steps -= 1
        return function(*arguments, **options)
    return call

for name in ("replace", "rename", "fsync", "unlink", "rmdir", "utime", "chown", "mkdir", "link"):
    setattr(os, name, counted(getattr(os, name)))
module.exchange_folders = counted(module.exchange_folders)
log = module.StagedLog(Path(folder), Path(root))
module.put_in_place(log) if action == "apply" else module.put_back(log, discard=False)
if steps == 0:
    os._exit(9)
"""


def _files(folder: Path) -> FolderFiles:
    files = tuple(state_of(file) for file in sorted(folder.iterdir()))
    return FolderFiles(inode=folder.stat().st_ino, files=files)


def _note(log: StagedLog) -> None:
    before, after = _files(log.folder), _files(log.other)
    manifest = LogManifest(folder=str(log.folder), before=before, after=after)
    write_manifest(log.manifest, manifest)


@pytest.fixture
def log(tmp_path: Path) -> StagedLog:
    log = StagedLog(tmp_path / "logs" / "t-0", tmp_path / "logs.migration" / "p")
    for folder, names in ((log.folder, (LOG, "x")), (log.other, (LOG, INDEX, "x"))):
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_bytes(f"{folder.parent.name} {name}".encode())
            os.utime(folder / name, ns=(5, 1_600_000_000_123_456_789))
    _note(log)
    return log


def _state(folder: Path) -> State:
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}


def _run(action: str, log: StagedLog, step: int) -> bool:
    """Run until the process is killed at a step; tell whether it came to its end."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", KILLED, action, log.folder, log.root, str(step)],
        env={"PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 9), done.stderr
    return done.returncode == 0


@pytest.mark.slow
def test_a_kill_at_any_step_leaves_one_of_the_two_and_says_which(log: StagedLog) -> None:
    states = {Side.BEFORE: _state(log.folder), Side.AFTER: _state(log.other)}
    seen = {"apply": set(), "rollback": set()}
    for action, goal, finish in (
        ("apply", Side.AFTER, put_in_place),
        ("rollback", Side.BEFORE, lambda log: put_back(log, discard=False)),
    ):
        start = log_state(log).side
        step, ended = 0, False
        while not ended:
            ended = _run(action, log, step)
            state = log_state(log)
            assert state.is_staged
            assert state.side is not None
            assert _state(log.folder) == states[state.side]
            seen[action].add(state.side)
            finish(log)
            assert log_state(log).side is goal
            assert _state(log.folder) == states[goal]
            if not ended and start is Side.BEFORE:
                put_back(log, discard=False)
            elif not ended:
                put_in_place(log)
            step += 1
        assert step > 3
    assert seen == {"apply": {*Side}, "rollback": {*Side}}


def test_both_can_be_done_again(log: StagedLog) -> None:
    first = _state(log.folder)
    for _ in range(2):
        put_in_place(log)
    assert log_state(log).message == "migrated"
    for _ in range(2):
        put_back(log, discard=False)
    assert _state(log.folder) == first
    put_in_place(log)
    assert log_state(log).side is Side.AFTER


def test_a_copy_that_has_other_inodes_is_told_by_its_files(log: StagedLog, tmp_path: Path) -> None:
    for side in (Side.BEFORE, Side.AFTER):
        copied = StagedLog(tmp_path / side / "logs" / "t-0", tmp_path / side / "aside")
        shutil.copytree(log.folder, copied.folder)
        shutil.copytree(log.root, copied.root)
        assert log_state(copied).side is side
        put_in_place(log)


def _touch(log: StagedLog) -> None:
    os.utime(log.folder / LOG, ns=(5, 6))


def _flip(file: Path) -> None:
    """Change a byte of a file, as a disk does: size and mtime stay."""
    stat, data = file.stat(), bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(5, stat.st_mtime_ns))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_touch, f"{LOG} has .* it had .* since it was staged: plan again"),
        (lambda log: (log.folder / LOG).unlink(), f"{LOG} is gone since it was staged"),
        (lambda log: (log.folder / "y").touch(), "y has come since it was staged"),
        (lambda log: _flip(log.other / INDEX), f"{INDEX} has other bytes since it was staged"),
        (lambda log: _flip(log.other / LOG), f"{LOG} has other bytes since it was staged"),
        (lambda log: log.manifest.write_text("{"), "no manifest"),
        (lambda log: shutil.rmtree(log.other), "nothing is staged"),
    ],
)
def test_a_log_that_has_changed_since_is_not_swapped(
    log: StagedLog, change: Callable[[StagedLog], object], message: str
) -> None:
    change(log)
    before = _state(log.folder)

    for act in (check_put_in_place, put_in_place):
        with pytest.raises(SetAsideError, match=message):
            act(log)

    assert _state(log.folder) == before


def _linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("path", ["folder", "other", "manifest"])
def test_a_link_in_the_place_of_a_folder_is_not_followed(log: StagedLog, path: str) -> None:
    put_in_place(log)
    _linked(getattr(log, path))

    for act in (check_put_back, put_back):
        with pytest.raises(SetAsideError, match="a symbolic link, not followed"):
            act(log, discard=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda files: files.append(files[0] | {"name": "../x"}), "files.3.name: found '../x'"),
        (lambda files: files[0].update(size_bytes=True), "files.0.size_bytes: found True"),
        (lambda files: files.pop(), "digest: found"),
        (lambda files: files[0].update(more=1), "files.0.more: found 1"),
    ],
)
def test_a_manifest_that_was_changed_is_refused(
    log: StagedLog, change: Callable[[Any], object], message: str
) -> None:
    manifest = json.loads(log.manifest.read_text())
    change(manifest["after"]["files"])
    log.manifest.write_text(json.dumps(manifest))

    with pytest.raises(SetAsideError, match=message):
        put_in_place(log)


def test_a_manifest_of_a_release_without_digests_is_read_by_the_other_rules(
    log: StagedLog,
) -> None:
    manifest = json.loads(log.manifest.read_text())
    del manifest["version"], manifest["digest"]
    log.manifest.write_text(json.dumps(manifest))
    put_in_place(log)
    put_back(log, discard=False)
    manifest["before"]["files"][0]["name"] = "../x"
    log.manifest.write_text(json.dumps(manifest))

    with pytest.raises(SetAsideError, match="no name of a file"):
        put_in_place(log)


def test_logs_are_told_by_size_and_mtime_alone_where_that_is_asked_for(log: StagedLog) -> None:
    _flip(log.other / LOG)
    put_in_place(log, by_mtime=True)
    _flip(log.other / LOG)

    with pytest.raises(SetAsideError, match=f"{LOG} has other bytes since it was set aside"):
        put_back(log, discard=False)
    put_back(log, discard=False, by_mtime=True)

    assert log_state(log).side is Side.BEFORE
    _flip(log.other / INDEX)
    with pytest.raises(SetAsideError, match=f"{INDEX} has other bytes"):
        put_in_place(log, by_mtime=True)


def test_a_log_that_both_folders_share_is_not_read_again(log: StagedLog) -> None:
    (log.other / LOG).unlink()
    os.link(log.folder / LOG, log.other / LOG)
    _note(log)
    _flip(log.folder / LOG)

    put_in_place(log)

    assert log_state(log).side is Side.AFTER


def test_records_that_came_since_are_not_lost(log: StagedLog) -> None:
    first = _state(log.folder)
    put_in_place(log)
    (log.folder / INDEX).write_bytes(b"rebuilt by a broker")
    (log.folder / LOG).write_bytes(b"appended by a broker")
    (log.folder / f"{9:020d}.snapshot").touch()
    grown = _state(log.folder)

    with pytest.raises(SetAsideError, match="since the migration: --discard-appended"):
        put_back(log, discard=False)
    put_back(log, discard=True)

    assert _state(log.folder) == first
    assert _state(log.other) == grown
    assert log_state(log).side is Side.BEFORE
    with pytest.raises(SetAsideError, match="since it was staged: plan again"):
        put_in_place(log)


def test_a_first_folder_that_was_changed_is_not_put_back(log: StagedLog) -> None:
    put_in_place(log)
    _touch(StagedLog(log.other, log.root))

    with pytest.raises(SetAsideError, match="since it was set aside: it is not put back"):
        put_back(log, discard=False)


def test_neither_folder_is_taken_for_the_other(log: StagedLog, tmp_path: Path) -> None:
    copied = StagedLog(tmp_path / "c" / "t-0", tmp_path / "aside")
    shutil.copytree(log.folder, copied.folder)
    shutil.copytree(log.root, copied.root)
    (copied.other / "more").touch()

    assert log_state(copied).side is None
    with pytest.raises(SetAsideError, match="neither folder is as"):
        put_in_place(copied)


def test_a_file_system_that_cannot_swap_is_refused_before_anything_changes(
    log: StagedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _state(log.folder)
    monkeypatch.setattr(folder_exchange.ctypes, "CDLL", lambda *_, **__: object())

    with pytest.raises(SetAsideError, match=r"cannot swap places .* ext4 or xfs"):
        put_in_place(log)

    assert _state(log.folder) == first


def test_a_swap_that_fails_says_where(log: StagedLog) -> None:
    with pytest.raises(FileNotFoundError, match="No such file"):
        folder_exchange.exchange_folders(log.folder / "none", log.other)


def test_a_manifest_says_what_was_staged(log: StagedLog) -> None:
    manifest = manifest_of(log)

    assert [file.name for file in manifest.after.files] == [INDEX, LOG, "x"]
    assert manifest.before == _files(log.folder)
