"""Apply a kit and take it back in processes that end at their first, second, … file system change.

Run as ``killed_kit.py EVERY FOLDER KITS LOG_DIR...``; EVERY is 1, or 9 for the first, tenth, … of
them, KITS may be a folder on another file system. A change is a name that is set or removed, a file
that is made, bytes written, the first half of those that are given back, a cut, a sync. It prints
how many changes there are while a kit is applied, and while it is taken back, or by EVERY a few
more, and after how many of the ended processes some log directories had their new recovery points
and others not. After each, a checkpoint may be ahead of the first one only if all that it says is
in place and was synced, and another run must finish, or bring the first state back. The log
directories as each process left them are copied to ``FOLDER/states``, by their numbers.
"""

import builtins
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any, Self

from kafka_segments.files.storage.durable_files import sha256_of
from kafka_segments.kafka.text.checkpoints import RECOVERY_POINT
from kafka_segments.verbs.change.recovery.apply.advanced_checkpoint import points_of
from kafka_segments.verbs.change.recovery.apply.run import (
    AppliedLog,
    ApplyOptions,
    run_apply,
    run_rollback,
)
from kafka_segments.verbs.change.recovery.kit_manifest import LogKit, folder_of, read_kit, read_log
from support.verbs.ended_processes import KILLED, is_ended
from support.verbs.recovery_kits import made_kit

CHANGES = (
    *("replace", "rename", "fsync", "unlink", "rmdir", "utime", "chmod", "mkdir", "link"),
    *("chown", "truncate", "write"),
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
                written(synced, f"{_identity(os.fstat(arguments[0]))}\n".encode())
            return function(*arguments, **options)

        return call

    def made(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if flags & os.O_EXCL:
            count()
        return by_system(path, flags, *arguments, **options)

    def opened(path: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if not set(mode) & set("wxa+"):
            return plain(path, mode, *arguments, **options)
        if set(mode) & set("wx"):
            count()
        file = plain(path, mode, *arguments, **options)
        return _CountedFile(file, count, in_place="+" in mode)

    plain, by_system, written = io.open, os.open, os.write
    builtins.open = io.open = opened  # type: ignore[assignment]
    os.open = made
    for name in CHANGES:
        setattr(os, name, counted(name, getattr(os, name)))


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


def _ended_early(act: Callable[[], object], steps: int, trace: Path) -> bool:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    return is_ended(lambda: _end_after(steps, os.open(trace, flags)), act)


def _is_advanced(log_dir: Path, logs: Sequence[LogKit], trace: Path) -> bool:
    """Check that a checkpoint is not ahead of what is in place and synced; tell if it advanced."""
    points = points_of((log_dir / RECOVERY_POINT).read_text())
    found = [points[log.topic, log.partition] for log in logs]
    if found == [log.recovery_point for log in logs]:
        return False
    assert found == [log.next_recovery_point for log in logs]
    synced = set(trace.read_text().split())
    for log in logs:
        folder = log_dir / log.log
        assert _identity(folder.stat()) in synced
        for file in log.files:
            assert sha256_of(folder / file.name) == file.sha256
            assert _identity((folder / file.name).stat()) in synced, file.name
        for segment in log.segments:
            status = (folder / f"{segment.base_offset:020d}.log").stat()
            is_cut = log.cut is not None and log.cut.base_offset == segment.base_offset
            size = log.cut.position if log.cut and is_cut else segment.size_bytes
            assert status.st_size == size
            assert _identity(status) in synced
    return True


class _Tries:
    """Kills one phase after another at each of its changes."""

    def __init__(self, every: int, first: Sequence[Path], folder: Path, kits: Path) -> None:
        self._every = every
        self._first = first
        self._folder = folder
        self._made, self._kit = kits / "made", kits / "kit"
        self._trace = folder / "trace"
        self._log_dirs = [folder / "logs" / str(number) for number in range(len(first))]
        self._options = ApplyOptions(self._kit, execute=True, at_once=1)
        self._expected = list(map(state_of, first))
        self._put_first()
        made_kit(self._log_dirs, self._made)
        found = [
            [read_log(folder_of(self._made, number), name) for name in names]
            for number, names in enumerate(read_kit(self._made).logs)
        ]
        self._logs = [[log for log in logs if log.files] for logs in found]
        self.partly = 0

    def _put_first(self) -> None:
        shutil.rmtree(self._folder / "logs", ignore_errors=True)
        for first, log_dir in zip(self._first, self._log_dirs, strict=True):
            shutil.copytree(first, log_dir)

    def kill_apply(self) -> int:
        """Kill what applies a kit at each change; return how many there are."""
        return self._kill("apply", lambda: None, self._apply)

    def kill_rollback(self) -> int:
        """Kill what takes a kit back at each change; return how many there are."""
        return self._kill("rollback", self._apply, self._roll_back)

    def _kill(self, phase: str, begin: Callable[[], None], act: Callable[[], None]) -> int:
        steps = 0
        while True:
            self._put_first()
            shutil.rmtree(self._kit, ignore_errors=True)
            shutil.copytree(self._made, self._kit)
            self._trace.unlink(missing_ok=True)
            begin()
            is_over = not _ended_early(act, steps, self._trace)
            if phase == "apply":
                self._check()
            shutil.copytree(self._folder / "logs", self._folder / "states" / f"{phase}-{steps}")
            if is_over:
                return steps
            if steps % 2 and phase == "apply":
                self._apply()
                self._roll_back()
            else:
                assert set(_statuses(run_rollback(self._options))) <= {"done", "not applied"}
            for log_dir, expected in zip(self._log_dirs, self._expected, strict=True):
                assert_same(state_of(log_dir), expected)
            if not steps % 2:
                self._apply()
            steps += self._every

    def _check(self) -> None:
        advanced = [
            _is_advanced(log_dir, logs, self._trace)
            for log_dir, logs in zip(self._log_dirs, self._logs, strict=True)
        ]
        self.partly += len(set(advanced)) > 1

    def _apply(self) -> None:
        assert set(_statuses(run_apply(self._options))) == {"done"}

    def _roll_back(self) -> None:
        assert set(_statuses(run_rollback(self._options))) == {"done"}


def _statuses(steps: Iterable[AppliedLog]) -> list[str]:
    return [step.status for step in steps]


def main() -> None:
    folder, kits, *log_dirs = map(Path, sys.argv[2:])
    tries = _Tries(int(sys.argv[1]), log_dirs, folder, kits)
    print(tries.kill_apply(), tries.kill_rollback(), tries.partly)


if __name__ == "__main__":
    main()
