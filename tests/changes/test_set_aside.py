"""Segments set aside and brought back: a kill at every step, files that are not as planned."""

import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from site import getsitepackages

import pytest

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.manifests import read_manifest
from kafka_segments.files.changes.set_aside import (
    MANIFEST,
    AsideManifest,
    SegmentFile,
    bring_back,
    check_planned,
    files_of_segments,
    is_set_aside,
    set_aside,
)
from kafka_segments.files.storage.durable_files import sha256_of
from kafka_segments.files.storage.folder_lock import held_lock

LIB = Path(__file__).resolve().parents[2] / "lib"
PATHS = os.pathsep.join([str(LIB), *getsitepackages()])
BASES = (0, 10)
SUFFIXES = ("log", "index")
# Each line forks a process that ends at its n-th change of the file system; renames between folders
# fail as between file systems where asked.
KILLED = """
import errno, json, os, sys
from pathlib import Path
from kafka_segments.files.changes import set_aside as module

def counted(function):
    def call(*arguments, **options):
        global steps
        if steps == 0:
            os._exit(9)
        steps -= 1
        if function is replace and across:
            if os.path.dirname(arguments[0]) != os.path.dirname(arguments[1]):
                raise OSError(errno.EXDEV, "another file system")
        return function(*arguments, **options)
    return call

def planned(folder, aside):
    manifest = aside / module.MANIFEST
    if not manifest.exists():
        return module.files_of_segments(folder, (0, 10))
    return [file.planned for file in module.read_manifest(manifest, module.AsideManifest).files]

replace = os.replace
for line in sys.stdin:
    action, folder, aside, steps, across = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    for name in ("replace", "fsync", "unlink", "rmdir", "utime", "chown", "mkdir"):
        setattr(os, name, counted(getattr(os, name)))
    folder, aside = Path(folder), Path(aside)
    if action == "apply":
        module.set_aside(folder, aside, planned(folder, aside))
    else:
        module.bring_back(folder, aside, planned(folder, aside))
    os._exit(0)
"""
Run = Callable[..., bool]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Run until the process is killed at a step; tell whether it came to its end."""
    command = [sys.executable, "-S", "-c", KILLED]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={"PYTHONPATH": PATHS}, **pipes) as killed:

        def call(action: str, folder: Path, aside: Path, *, step: int, across: bool) -> bool:
            assert killed.stdin is not None
            assert killed.stdout is not None
            asked = json.dumps([action, str(folder), str(aside), step, across])
            print(asked, file=killed.stdin, flush=True)
            status = int(killed.stdout.readline())
            assert status in (0, 9)
            return status == 0

        yield call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "logs" / "t-0"
    folder.mkdir(parents=True)
    for base in (*BASES, 20):
        for suffix in SUFFIXES:
            file = folder / f"{base:020d}.{suffix}"
            file.write_bytes(f"{base} {suffix}".encode() * 9)
            os.utime(file, ns=(1_600_000_000_123_456_789, 1_600_000_000_987_654_321 + base))
    (folder / "leader-epoch-checkpoint").write_text("0\n0\n")
    return folder


def _state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}


def _is_without_hole(folder: Path) -> bool:
    """Tell whether the logs left are the youngest ones, and no index is without its log."""
    logs = sorted(int(file.stem) for file in folder.glob("*.log"))
    indexes = {int(file.stem) for file in folder.glob("*.index")}
    return logs == [0, 10, 20][-len(logs) :] and indexes <= set(logs)


@pytest.mark.parametrize("across", [False, True], ids=["one file system", "two file systems"])
def test_a_kill_at_any_step_leaves_a_log_without_a_hole_and_all_can_be_brought_back(
    folder: Path, run: Run, tmp_path: Path, *, across: bool
) -> None:
    before, aside = _state(folder), tmp_path / "aside" / "t-0"
    step, ended = 0, False
    while not ended:
        ended = run("apply", folder, aside, step=step, across=across)
        assert _is_without_hole(folder)
        if step % 2 and aside.exists():
            bring_back(folder, aside, _planned(folder, aside))
            assert _state(folder) == before
        set_aside(folder, aside, _planned(folder, aside))
        assert sorted(file.name for file in folder.glob("*.log")) == [f"{20:020d}.log"]
        ended &= run("rollback", folder, aside, step=step, across=across)
        assert _is_without_hole(folder)
        if aside.exists():
            bring_back(folder, aside, _planned(folder, aside))
        assert _state(folder) == before
        step += 1
    assert step > 10


def _planned(folder: Path, aside: Path) -> list[SegmentFile]:
    if (aside / MANIFEST).exists():
        return [file.planned for file in read_manifest(aside / MANIFEST, AsideManifest).files]
    return files_of_segments(folder, BASES)


def test_the_files_that_a_broker_deletes_go_and_no_others(folder: Path, tmp_path: Path) -> None:
    set_aside(folder, tmp_path / "aside", files_of_segments(folder, BASES))

    assert len(list((tmp_path / "aside").iterdir())) == 5
    assert {file.name for file in folder.iterdir()} == {
        "leader-epoch-checkpoint",
        *(f"{20:020d}.{suffix}" for suffix in SUFFIXES),
    }


def _touch(folder: Path) -> None:
    os.utime(folder / f"{10:020d}.log", ns=(0, 5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_touch, f"{10:020d}.log has 54 bytes and mtime 1970-01-01 00:00:00.000000005 UTC, 54 and"),
        (lambda folder: (folder / f"{0:020d}.log").unlink(), f"{0:020d}.log is gone since"),
        (
            lambda folder: (folder / f"{0:020d}.txnindex").touch(),
            f"{0:020d}.txnindex was not there when it was planned",
        ),
        (
            lambda folder: (folder / f"{5:020d}.log").touch(),
            "segment 5 is older than 10 and not in the plan",
        ),
        (lambda folder: (folder / f"{20:020d}.log").unlink(), "segment 10 is the last one"),
    ],
)
def test_a_plan_older_than_the_data_is_refused(folder, tmp_path, change, message):
    planned = files_of_segments(folder, BASES)
    change(folder)

    with pytest.raises(SetAsideError, match=message):
        check_planned(folder, tmp_path / "aside", planned)


def test_a_file_with_other_bytes_of_the_same_size_and_mtime_is_refused_where_digests_are_planned(
    folder, tmp_path
):
    planned, aside = files_of_segments(folder, BASES), tmp_path / "aside"
    digests = {file.name: sha256_of(folder / file.name) for file in planned}
    check_planned(folder, aside, planned, digests)
    file = folder / f"{10:020d}.log"
    stat, data = file.stat(), file.read_bytes()
    file.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    check_planned(folder, aside, planned)
    message = f"{10:020d}.log: its sha256 is [0-9a-f]{{64}}, {digests[file.name]} when it was pl"
    for refused in (check_planned, set_aside):
        with pytest.raises(SetAsideError, match=message):
            refused(folder, aside, planned, digests)
    assert not aside.exists()
    file.write_bytes(data)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    set_aside(folder, aside, planned, digests)
    assert is_set_aside(folder, aside, planned)


@pytest.mark.parametrize("across", [False, True], ids=["one file system", "two file systems"])
@pytest.mark.parametrize("leads_to", ["gone", "elsewhere", "{}/elsewhere"])
def test_a_link_goes_with_its_segment_and_comes_back_as_the_link_that_it_is(
    folder, tmp_path, monkeypatch, leads_to, across
):
    link, aside = folder / f"{0:020d}.timeindex", tmp_path / "aside"
    (folder / "elsewhere").write_bytes(b"times")
    leads_to = leads_to.format(folder)
    link.symlink_to(leads_to)
    if across:
        monkeypatch.setattr(os, "replace", _refuse_to_leave_a_folder(os.replace))

    planned = files_of_segments(folder, BASES)
    check_planned(folder, aside, planned, {link.name: sha256_of(link)})
    set_aside(folder, aside, planned)

    assert not os.path.lexists(link)
    assert str((aside / link.name).readlink()) == leads_to
    assert is_set_aside(folder, aside, planned)
    assert bring_back(folder, aside, _planned(folder, aside)) == len(planned)
    assert str(link.readlink()) == leads_to
    assert (folder / "elsewhere").read_bytes() == b"times"


def _refuse_to_leave_a_folder(replace):
    def call(source, target):
        if Path(source).parent != Path(target).parent:
            raise OSError(errno.EXDEV, "another file system")
        replace(source, target)

    return call


def test_another_link_in_the_place_of_one_set_aside_is_not_overwritten(folder, tmp_path):
    link, aside = folder / f"{0:020d}.timeindex", tmp_path / "aside"
    link.symlink_to("gone")
    set_aside(folder, aside, files_of_segments(folder, BASES))
    link.symlink_to("else")

    with pytest.raises(SetAsideError, match="another file took its place: move it away"):
        bring_back(folder, aside, _planned(folder, aside))

    assert str(link.readlink()) == "else"


def test_what_is_moved_in_part_or_back_again_is_not_set_aside(folder, tmp_path):
    planned, aside = files_of_segments(folder, BASES), tmp_path / "aside"
    assert not is_set_aside(folder, aside, planned)
    set_aside(folder, aside, planned)

    assert is_set_aside(folder, aside, planned)
    (aside / planned[-1].name).rename(folder / planned[-1].name)
    assert not is_set_aside(folder, aside, planned)
    set_aside(folder, aside, planned)
    bring_back(folder, aside, _planned(folder, aside))
    assert not is_set_aside(folder, aside, planned)


def test_a_file_that_took_the_place_of_one_set_aside_is_not_overwritten(folder, tmp_path):
    aside = tmp_path / "aside"
    set_aside(folder, aside, files_of_segments(folder, BASES))
    other = folder / f"{10:020d}.index"
    other.write_bytes(b"rebuilt")

    with pytest.raises(SetAsideError, match="another file took its place: move it away"):
        bring_back(folder, aside, _planned(folder, aside))

    assert other.read_bytes() == b"rebuilt"


def test_a_file_that_was_changed_in_the_set_aside_folder_is_not_brought_back(folder, tmp_path):
    aside = tmp_path / "aside"
    set_aside(folder, aside, files_of_segments(folder, BASES))
    file = aside / f"{10:020d}.log"
    stat = file.stat()
    file.write_bytes(b"x" * stat.st_size)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    with pytest.raises(SetAsideError, match="its sha256 is not the one of the manifest"):
        bring_back(folder, aside, _planned(folder, aside))


def test_a_lock_that_is_a_link_is_not_opened(tmp_path):
    (tmp_path / ".lock").symlink_to("elsewhere")

    with (
        pytest.raises(SetAsideError, match="cannot be opened"),
        held_lock(tmp_path / ".lock", creates=True),
    ):
        pass

    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_that_a_broker_holds_is_refused_and_ours_keeps_a_broker_out(tmp_path):
    lock = tmp_path / ".lock"
    code = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX |"
        " fcntl.LOCK_NB); print('held', flush=True); sys.stdin.read()"
    )
    with held_lock(lock):
        pass
    lock.touch()
    with held_lock(lock):
        beside = subprocess.run(
            [sys.executable, "-c", code, lock],
            input="",
            capture_output=True,
            text=True,
            check=False,
        )
    assert "BlockingIOError" in beside.stderr
    broker = subprocess.Popen(
        [sys.executable, "-c", code, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert broker.stdout is not None
        broker.stdout.readline()
        with (
            pytest.raises(SetAsideError, match=r"its \.lock is held: stop its broker first"),
            held_lock(lock),
        ):
            pass
    finally:
        broker.communicate()
    with lock.open("r+") as stream:
        fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
