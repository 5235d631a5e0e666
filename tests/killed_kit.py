"""Apply a kit and take it back in processes that end at their first, second, … file system change.

Run as ``killed_kit.py LOG_DIR FOLDER``; the log directory has one log. A change is a name that is
set or removed, a file that is made, bytes written, the first half of those that are given back, a
cut, a sync. It prints how many processes were ended early. After each, the checkpoint may be ahead
of the first one only if all that it says is in place and was synced, and another run must finish,
or bring the first state back. The log directory as each process left it is copied to
``FOLDER/states``.
"""

import builtins
import io
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Self

from kafka_segments.recovery.advanced_checkpoint import points_of
from kafka_segments.recovery.apply_run import ApplyOptions, apply_kit, roll_back_kit
from kafka_segments.recovery.kit_manifest import LogKit, folder_of, read_logs
from kafka_segments.storage.durable_files import sha256_of
from kafka_segments.wire.checkpoints import RECOVERY_POINT
from recovery_kits import made_kit

KILLED = 9
CHANGES = (
    *("replace", "rename", "fsync", "unlink", "rmdir", "utime", "chmod", "mkdir", "link"),
    *("chown", "truncate"),
)
State = dict[str, tuple[bytes, int]]


def state_of(log_dir: Path) -> State:
    """Return bytes and mtime of all files of a log directory, by their paths."""
    return {
        str(path.relative_to(log_dir)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in log_dir.rglob("*")
        if path.is_file()
    }


def assert_same(found: State, expected: State) -> None:
    """Compare names, bytes and mtimes; the checkpoint is written anew, so not its mtime."""
    for name in found.keys() | expected.keys():
        same = slice(1) if name == RECOVERY_POINT else slice(None)
        assert found.get(name, ())[same] == expected.get(name, ())[same], name


class _CountedFile:
    """A file that is open for writing; ``count`` is called before each change of its bytes."""

    def __init__(self, file: IO[Any], count: Callable[[], None], *, in_place: bool) -> None:
        self._file = file
        self._count = count
        self._in_place = in_place

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: Any) -> int:
        middle = len(data) // 2 if self._in_place else 0
        for part in (data[:middle], data[middle:]):
            if part:
                self._count()
                self._file.write(part)
                self._file.flush()
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        self._count()
        return self._file.truncate(size)


def _end_after(steps: int, synced: int) -> None:
    """End the process at a change; note the inode of all that is synced."""
    left = steps

    def count() -> None:
        nonlocal left
        if left == 0:
            os._exit(KILLED)
        left -= 1

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            count()
            if name == "fsync":
                os.write(synced, f"{os.fstat(arguments[0]).st_ino}\n".encode())
            return function(*arguments, **options)

        return call

    def opened(path: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if not set(mode) & set("wxa+"):
            return plain(path, mode, *arguments, **options)
        if set(mode) & set("wx"):
            count()
        file = plain(path, mode, *arguments, **options)
        return _CountedFile(file, count, in_place="+" in mode)

    plain = io.open
    builtins.open = io.open = opened  # type: ignore[assignment]
    for name in CHANGES:
        setattr(os, name, counted(name, getattr(os, name)))


def _ended_early(act: Callable[[], object], steps: int, trace: Path) -> bool:
    child = os.fork()
    if child == 0:
        try:
            _end_after(steps, os.open(trace, os.O_WRONLY | os.O_APPEND | os.O_CREAT))
            act()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, KILLED), status
    return status == KILLED


def _check(log_dir: Path, log: LogKit, trace: Path) -> None:
    """Check that the checkpoint is not ahead of what is in place and synced."""
    text = (log_dir / RECOVERY_POINT).read_text()
    point = points_of(text)[log.topic, log.partition]
    assert point in (log.recovery_point, log.next_recovery_point)
    if point == log.recovery_point:
        return
    synced = set(map(int, trace.read_text().split()))
    folder = log_dir / log.log
    assert folder.stat().st_ino in synced
    for file in log.files:
        assert sha256_of(folder / file.name) == file.sha256
        assert (folder / file.name).stat().st_ino in synced, file.name
    for segment in log.segments:
        status = (folder / f"{segment.base_offset:020d}.log").stat()
        is_cut = log.cut is not None and log.cut.base_offset == segment.base_offset
        assert status.st_size == (log.cut.position if log.cut and is_cut else segment.size_bytes)
        assert status.st_ino in synced


def _kill_at_each_change(
    first: Path, folder: Path, phase: str, before: Callable[[ApplyOptions], None]
) -> int:
    """Kill one phase at each change; ``before`` brings a fresh copy to where the phase begins."""
    act = apply_kit if phase == "apply" else roll_back_kit
    log_dir, kit, trace = folder / "logs", folder / "kit", folder / "trace"
    options = ApplyOptions(kit, execute=True, at_once=1)
    expected = state_of(first)
    steps = 0
    while True:
        for path in (log_dir, kit):
            shutil.rmtree(path, ignore_errors=True)
        trace.unlink(missing_ok=True)
        shutil.copytree(first, log_dir)
        shutil.copytree(folder / "made", kit)
        (log,) = [log for log in read_logs(folder_of(kit, 0)) if log.files]
        before(options)
        is_over = not _ended_early(lambda: list(act(options)), steps, trace)
        if phase == "apply":
            _check(log_dir, log, trace)
        shutil.copytree(log_dir, folder / "states" / f"{phase}-{steps}")
        if is_over:
            return steps
        if steps % 2:
            if phase == "apply":
                assert [step.status for step in apply_kit(options)] == ["done"]
            assert [step.status for step in roll_back_kit(options)] == ["done"] or phase != "apply"
            assert_same(state_of(log_dir), expected)
        else:
            left = [step.status for step in roll_back_kit(options)]
            assert left in (["done"], ["not applied"]), left
            assert_same(state_of(log_dir), expected)
            assert [step.status for step in apply_kit(options)] == ["done"]
        steps += 1


def main() -> None:
    first, folder = map(Path, sys.argv[1:])
    shutil.copytree(first, folder / "logs")
    made_kit(folder / "logs", folder / "made")
    applied = _kill_at_each_change(first, folder, "apply", lambda _: None)
    back = _kill_at_each_change(first, folder, "rollback", lambda all_: _do(apply_kit(all_)))
    print(applied, back)


def _do(steps: Any) -> None:
    assert [step.status for step in steps] == ["done"]


if __name__ == "__main__":
    main()
