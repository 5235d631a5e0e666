"""A kit applied and taken back: what is refused, what is kept, a kill at every step."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from conftest import ROOT
from kafka_segments.errors import UsageError
from kafka_segments.kafka.text.checkpoints import CLEAN_SHUTDOWN, LOCK, RECOVERY_POINT
from kafka_segments.verbs.change.recovery.apply.advanced_checkpoint import points_of
from kafka_segments.verbs.change.recovery.apply.run import ApplyOptions, run_apply, run_rollback
from support.house.ci import OWN_MOUNTS, require_own_mounts, skip_but_in_ci
from support.kafka.kafka_referee import Referee
from support.stores import full_disk_kit
from support.verbs import killed_kit
from support.verbs.killed_kit import state_of
from support.verbs.recovery_kits import NOW_MS, crashed_log, made_kit

CHANGES = (128, 48)
"""How many changes of the file system an apply and a rollback of one log make."""
CASE = "v2-txn-interleaved-multi-segment"
TORN = (500).to_bytes(8, "big") + (4000).to_bytes(4, "big") + bytes(4) + b"\x02" + bytes(100)


@pytest.fixture
def log_dir(synthetic: Path, tmp_path: Path) -> Path:
    """A crashed log directory with one log, whose last segment ends in a torn batch."""
    crashed_log(tmp_path / "logs", synthetic / CASE / "t-0", torn=TORN)
    return tmp_path / "logs"


@pytest.fixture
def kit(log_dir: Path, tmp_path: Path) -> Path:
    made_kit(log_dir, tmp_path / "kit", has_digests=True)
    return tmp_path / "kit"


def _apply(kit: Path, **options: Any) -> tuple[str, str]:
    (step,) = run_apply(ApplyOptions(kit, **{"execute": True, **options}))
    return step.status, step.message


def _roll_back(kit: Path, *, execute: bool = True) -> tuple[str, str]:
    (step,) = run_rollback(ApplyOptions(kit, execute=execute))
    return step.status, step.message


def _points(log_dir: Path) -> dict[tuple[str, int], int]:
    return points_of((log_dir / RECOVERY_POINT).read_text())


def _last_log(log_dir: Path) -> Path:
    return max((log_dir / "t-0").glob("*.log"))


def test_apply_cuts_the_tail_puts_the_files_and_advances_that_log_alone(
    log_dir: Path, tmp_path: Path
) -> None:
    log = made_kit(log_dir, tmp_path / "kit")["t-0"]
    before = _last_log(log_dir).stat()

    assert _apply(tmp_path / "kit") == ("done", "")

    assert log.cut is not None
    assert (log.cut.size_bytes, log.cut.records) == (len(TORN), 0)
    cut = log_dir / "t-0" / f"{log.cut.base_offset:020d}.log"
    assert cut.stat().st_size == before.st_size - len(TORN)
    assert cut.stat().st_mtime_ns == before.st_mtime_ns
    assert _points(log_dir) == {("other", 1): 7, ("t", 0): log.next_recovery_point}
    assert _last_log(log_dir).name == f"{log.next_recovery_point:020d}.log"
    assert _last_log(log_dir).stat().st_size == 0
    assert not (log_dir / CLEAN_SHUTDOWN).exists()


def test_a_dry_run_changes_nothing(log_dir: Path, kit: Path) -> None:
    first = state_of(log_dir)

    assert _apply(kit, execute=False)[0] == "would be done"
    assert _roll_back(kit, execute=False)[0] == "not applied"

    assert state_of(log_dir) == first


def test_applied_twice_and_taken_back_twice_it_is_as_it_was(log_dir: Path, kit: Path) -> None:
    first = state_of(log_dir)
    assert _apply(kit)[0] == "done"
    applied = state_of(log_dir)
    assert _apply(kit)[0] == "done"
    assert state_of(log_dir) == applied
    assert _roll_back(kit, execute=False)[0] == "would be put back"

    assert _roll_back(kit)[0] == "done"
    assert _roll_back(kit)[0] == "not applied"

    killed_kit.assert_same(state_of(log_dir), first)
    assert _apply(kit)[0] == "done"


def test_a_log_directory_whose_lock_is_held_is_left_alone(log_dir: Path, kit: Path) -> None:
    held = (
        "import fcntl, sys\nlock = open(sys.argv[1], 'r+')\nfcntl.lockf(lock, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\nsys.stdin.read()"
    )
    first = state_of(log_dir)
    broker = subprocess.Popen(
        [sys.executable, "-c", held, log_dir / LOCK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert broker.stdout is not None
    broker.stdout.readline()

    refused = _apply(kit), _roll_back(kit)
    with pytest.raises(UsageError, match="stop its broker first"):
        made_kit(log_dir, kit.parent / "another")
    broker.communicate()

    assert {status for status, _ in refused} == {"refused"}
    assert all("its .lock is held: stop its broker first" in message for _, message in refused)
    assert state_of(log_dir) == first
    assert _apply(kit)[0] == "done"


def test_a_copy_without_a_lock_file_gets_one_once_something_is_done(
    log_dir: Path, kit: Path
) -> None:
    (log_dir / LOCK).unlink()
    if os.getuid() == 0:
        os.chown(log_dir, 65_534, 65_534)

    for change in (_apply, _roll_back):
        change(kit, execute=False)
        assert not (log_dir / LOCK).exists()
    assert _apply(kit)[0] == "done"

    lock, folder = (log_dir / LOCK).stat(), log_dir.stat()
    assert (lock.st_size, lock.st_uid, lock.st_gid) == (0, folder.st_uid, folder.st_gid)


@pytest.mark.parametrize("is_copy", [False, True])
def test_our_lock_keeps_a_broker_away_meanwhile(
    log_dir: Path, kit: Path, monkeypatch: pytest.MonkeyPatch, is_copy: bool
) -> None:
    take = (
        "import fcntl, sys\nlock = open(sys.argv[1], 'r+')\n"
        "fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)"
    )
    if is_copy:
        (log_dir / LOCK).unlink()
    tries = {}
    plain = os.replace

    def replaced(source: Any, target: Any) -> None:
        if str(target).endswith((".log", RECOVERY_POINT)):
            tries[Path(target).name] = subprocess.run(
                [sys.executable, "-c", take, log_dir / LOCK], capture_output=True, check=False
            ).returncode
        plain(source, target)

    monkeypatch.setattr(os, "replace", replaced)
    assert _apply(kit)[0] == "done"

    assert len(tries) == 2
    assert set(tries.values()) == {1}


def _grow(log_dir: Path) -> None:
    with _last_log(log_dir).open("ab") as stream:
        stream.write(b"x")


def _touch(log_dir: Path) -> None:
    os.utime(min((log_dir / "t-0").glob("*.log")))


def _roll(log_dir: Path) -> None:
    (log_dir / "t-0" / f"{10**6:020d}.log").touch()


def _advance(log_dir: Path) -> None:
    path = log_dir / RECOVERY_POINT
    path.write_text(path.read_text().replace("t 0 0", "t 0 3"))


def _stop_cleanly(log_dir: Path) -> None:
    (log_dir / CLEAN_SHUTDOWN).touch()


def _remove(log_dir: Path) -> None:
    min((log_dir / "t-0").glob("*.log")).unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_grow, "when the kit was made"),
        (_touch, "when the kit was made"),
        (_roll, "has come since the kit was made"),
        (_advance, "its recovery point is 3, 0 when the kit was made"),
        (_stop_cleanly, "stopped cleanly"),
        (_remove, "gone since the kit was made"),
    ],
)
def test_a_log_that_has_changed_since_is_refused(
    log_dir: Path, kit: Path, change: Callable[[Path], None], message: str
) -> None:
    change(log_dir)
    changed = state_of(log_dir)

    status, said = _apply(kit)

    assert (status, message in said) == ("refused", True), said
    assert state_of(log_dir) == changed


def test_bytes_that_changed_under_the_same_mtime_are_found_by_digest(
    log_dir: Path, kit: Path
) -> None:
    first = min((log_dir / "t-0").glob("*.log"))
    stat, data = first.stat(), bytearray(first.read_bytes())
    data[70] ^= 1
    first.write_bytes(data)
    os.utime(first, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    assert "sha256" in _apply(kit, by_digest=True)[1]
    assert _apply(kit)[0] == "done"


def test_a_kit_without_digests_cannot_be_applied_by_them(log_dir: Path, tmp_path: Path) -> None:
    made_kit(log_dir, tmp_path / "kit")

    with pytest.raises(UsageError, match="made without --digests"):
        _apply(tmp_path / "kit", by_digest=True)


def test_a_spoilt_file_of_the_kit_is_not_put(log_dir: Path, kit: Path) -> None:
    first = state_of(log_dir)
    min((kit / "0" / "t-0").glob("*.timeindex")).write_bytes(bytes(12))

    assert "not as the kit says" in _apply(kit)[1]
    assert state_of(log_dir) == first


def test_a_kit_that_was_not_finished_is_no_kit(kit: Path) -> None:
    (kit / "manifest.json").unlink()

    with pytest.raises(UsageError, match="did not finish"):
        _apply(kit)


def test_what_a_broker_wrote_since_is_not_taken_back(log_dir: Path, kit: Path) -> None:
    _apply(kit)
    _last_log(log_dir).write_bytes(b"new records")
    changed = {name: data for name, data in state_of(log_dir).items() if name != RECOVERY_POINT}

    status, message = _roll_back(kit)

    assert status == "refused"
    assert "since" in message
    after = state_of(log_dir)
    assert {name: after[name] for name in changed} == changed
    assert _points(log_dir)["t", 0] == 0  # from there the broker recovers, as without a kit


def test_a_checkpoint_that_a_broker_wrote_since_stays(log_dir: Path, kit: Path) -> None:
    _apply(kit)
    (log_dir / RECOVERY_POINT).write_text("0\n1\nt 0 999\n")
    changed = state_of(log_dir)

    assert "a broker has run since" in _roll_back(kit)[1]
    assert "a broker has run since" in _apply(kit)[1]
    assert state_of(log_dir) == changed


def test_a_kit_is_applied_to_a_copy_that_lies_elsewhere(log_dir: Path, kit: Path) -> None:
    elsewhere = log_dir.parent / "restored"
    shutil.copytree(log_dir, elsewhere)
    first = state_of(log_dir)

    assert _apply(kit, log_dirs=[str(elsewhere)])[0] == "done"

    assert state_of(log_dir) == first
    assert _points(elsewhere)["t", 0] > 0
    with pytest.raises(UsageError, match="2 --log-dir given, the kit was made of 1"):
        _apply(kit, log_dirs=[str(elsewhere), str(log_dir)])


def _log_files(folder: Path) -> list[str]:
    return [path.name for path in sorted(folder.glob("*.log")) if path.stat().st_size]


def _loaded(referee: Referee, log_dir: Path, copy: Path) -> tuple[object, ...]:
    """Load a log as a broker does after a crash; return its end, segments, snapshot and epochs."""
    log = copy / "t-0"
    shutil.copytree(log_dir / "t-0", log)
    point = _points(log_dir)["t", 0]
    loaded = referee.load_log(log, is_clean=False, recovery_point=point, now_ms=NOW_MS)
    end = loaded["log_end_offset"]
    snapshot = (log / f"{end:020d}.snapshot").read_bytes()
    epochs = (log / "leader-epoch-checkpoint").read_bytes()
    return end, _log_files(log), snapshot, epochs


def test_a_full_disk_leaves_the_log_as_it_was_and_with_room_all_is_done(
    log_dir: Path, tmp_path: Path
) -> None:
    require_own_mounts()
    (tmp_path / "work").mkdir()

    done = subprocess.run(
        [*OWN_MOUNTS, sys.executable, full_disk_kit.__file__, log_dir, tmp_path / "work"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    *failed, applied, back = done.stdout.splitlines()
    assert (applied.strip(), back) == ("done", "done")
    assert failed
    assert all("No space left on device" in line for line in failed)


def _killed(folder: Path, kits: Path, *log_dirs: Path, every: int = 1) -> list[int]:
    """Kill at changes; return those of an apply, of a rollback, and the partly done."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, killed_kit.__file__, str(every), folder, kits, *log_dirs],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(map(int, done.stdout.split()))


@pytest.mark.slow
def test_a_kill_at_any_step_leaves_a_log_that_a_broker_loads_to_the_same_end(
    referee: Referee, log_dir: Path, tmp_path: Path
) -> None:
    applied, back, _ = _killed(tmp_path / "work", tmp_path / "work", log_dir)

    assert (applied, back) == CHANGES
    assert f"each of its {applied + back} changes" in (ROOT / "docs/recovery-kit.md").read_text()
    expected = _loaded(referee, log_dir, tmp_path / "without")
    states = sorted((tmp_path / "work" / "states").iterdir())
    for state in states:
        assert _loaded(referee, state / "0", tmp_path / f"of-{state.name}") == expected, state.name


@pytest.fixture
def other_file_system(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system than the tests' own folders."""
    found = next(
        (
            path
            for path in map(Path, ("/dev/shm", "/tmp", "/var/tmp"))
            if os.access(path, os.W_OK) and path.stat().st_dev != tmp_path.stat().st_dev
        ),
        None,
    )
    if found is None:
        skip_but_in_ci("second file system among /dev/shm, /tmp and /var/tmp")
    with TemporaryDirectory(dir=found) as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.long)])
def test_a_kill_at_any_step_leaves_several_log_directories_as_they_were_or_done(
    synthetic: Path, tmp_path: Path, other_file_system: Path, every: int
) -> None:
    for number, topics in enumerate(("tu", "w")):
        for topic in topics:
            segments = tmp_path / "segments" / f"{topic}-0"
            shutil.copytree(synthetic / "v2-one-record" / "t-0", segments)
            crashed_log(tmp_path / str(number), segments, torn=TORN)
        points = "".join(f"{topic} 0 0\n" for topic in topics)
        checkpoint = f"0\n{1 + len(topics)}\nother 1 7\n{points}"
        (tmp_path / str(number) / RECOVERY_POINT).write_text(checkpoint)

    applied, back, partly = _killed(
        tmp_path / "work", other_file_system, tmp_path / "0", tmp_path / "1", every=every
    )

    assert min(applied, back) > 30
    assert partly > 10 // every, "after so many a log directory was done, and the other one not"
