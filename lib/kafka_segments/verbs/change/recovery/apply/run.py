"""Apply a kit to stopped brokers' log directories, and take it back.

Each log directory is changed under its broker's own lock: first all of its logs, then its
checkpoint. A rollback goes the other way round. So the checkpoint is never ahead of what is
verified and on disk.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kafka_segments.engine.tables.outcomes import Outcome
from kafka_segments.errors import SetAsideError, UsageError
from kafka_segments.files.storage.durable_files import sync_folder
from kafka_segments.files.storage.folder_lock import lock_or_reason
from kafka_segments.verbs.change.recovery.apply.checkpoint_change import (
    CheckpointState,
    advance,
    forget,
    refuse_started,
    set_back,
    state_of,
)
from kafka_segments.verbs.change.recovery.apply.log_change import (
    change_log,
    change_log_back,
    forget_kept,
)
from kafka_segments.verbs.change.recovery.apply.log_check import (
    LogFolders,
    check_back,
    check_log,
    check_segments,
    check_unchanged,
    read_note,
)
from kafka_segments.verbs.change.recovery.kit_manifest import (
    KitManifest,
    KitState,
    LogKit,
    NamedLog,
    folder_of,
    kept_folder,
    read_kit,
    read_logs,
)

_AT_ONCE = 8  # logs changed side by side: most of it is waiting for the disk


class ApplyOptions(NamedTuple):
    """How a kit is applied or taken back.

    ``log_dirs`` are other paths of the kit's log directories, in the kit's order; None: its own.
    Without ``execute`` nothing changes.
    """

    kit: Path
    execute: bool
    by_digest: bool = False
    log_dirs: Sequence[str] | None = None
    at_once: int = _AT_ONCE


@dataclass(frozen=True)
class AppliedLog:
    """What became of a log; ``cut_records`` is how many records the torn batches claim."""

    log_dir: str
    log: str
    status: str
    files: int = 0
    cut_bytes: int = 0
    cut_records: int = 0
    recovery_point_before: int = 0
    recovery_point: int = 0
    message: str = ""


class _LogDir(NamedTuple):
    number: int
    path: Path
    kit: Path
    logs: tuple[NamedLog, ...]

    @property
    def kept(self) -> Path:
        return kept_folder(self.kit, self.number)

    def folders(self, log: str) -> LogFolders:
        return LogFolders(self.path / log, folder_of(self.kit, self.number) / log, self.kept / log)


_Act = Callable[[LogFolders, LogKit, CheckpointState], str]
"""Acts on a log and returns its status."""


def run_apply(options: ApplyOptions) -> Iterator[AppliedLog]:
    """Change the logs of a kit that are ready, advance their recovery points; yield each log.

    A log that has changed since the kit was made is refused, and one whose manifest cannot be used.
    So are all logs of a log directory whose broker runs or has run since. Where a file cannot be
    written, the log directory's checkpoint stays as it is.

    Raises:
        UsageError: the folder is no kit; the kit has no digests, and ``by_digest`` needs them; or
            ``log_dirs`` are not as many as its own.
    """
    manifest = read_kit(options.kit)
    if options.by_digest and not manifest.has_digests:
        raise UsageError(f"{options.kit} has no digests: it was made without --digests")

    def act(folders: LogFolders, log: LogKit, checkpoint: CheckpointState) -> str:
        _check_recovery_point(folders, log, checkpoint)
        check_log(folders, log, by_digest=options.by_digest)
        if not options.execute:
            return "would be done"
        change_log(folders, log)
        return Outcome.DONE

    for log_dir in _log_dirs(options, manifest):
        with _held(log_dir, creates=options.execute) as refusal:
            steps = list(_tried(log_dir, act, refusal, options.at_once))
            points = {
                (log.topic, log.partition): log.next_recovery_point
                for log, step in steps
                if step.status == Outcome.DONE and isinstance(log, LogKit)
            }
            if points and not any(step.status == Outcome.FAILED for _, step in steps):
                sync_folder(log_dir.path)
                advance(log_dir.path, log_dir.kept, points)
        yield from (step for _, step in steps)


def run_rollback(options: ApplyOptions) -> Iterator[AppliedLog]:
    """Put recovery points and files back as they were before ``run_apply``; yield each log.

    A log that its broker has written to since is left as it is: with its first recovery point the
    broker recovers it as if no kit had been applied.

    Raises:
        UsageError: see ``run_apply``.
    """
    manifest = read_kit(options.kit)

    def act(folders: LogFolders, log: LogKit, checkpoint: CheckpointState) -> str:
        note = read_note(folders)
        if note is None:
            (forget_kept if options.execute else check_unchanged)(folders, log)
            if (log.topic, log.partition) in checkpoint.advanced:
                check_segments(folders, log, None)
            return "not applied"
        _check_first_point(folders, log, checkpoint)
        if not options.execute:
            check_back(folders, log, note)
            return "would be put back"
        change_log_back(folders, log, note)
        return Outcome.DONE

    for log_dir in _log_dirs(options, manifest):
        with _held(log_dir, creates=options.execute) as refusal:
            if options.execute and refusal is None:
                set_back(log_dir.path, log_dir.kept)
            steps = list(_tried(log_dir, act, refusal, options.at_once, is_back=True))
            wrong = (Outcome.FAILED, Outcome.REFUSED)
            if options.execute and not any(step.status in wrong for _, step in steps):
                forget(log_dir.kept)
        yield from (step for _, step in steps)


def _log_dirs(options: ApplyOptions, manifest: KitManifest) -> Iterator[_LogDir]:
    own = manifest.log_dirs
    paths = own if options.log_dirs is None else options.log_dirs
    if len(paths) != len(own):
        raise UsageError(
            f"{len(paths)} --log-dir given, the kit was made of {len(own)}: {', '.join(own)}"
        )
    for number, (path, names) in enumerate(zip(paths, manifest.logs, strict=True)):
        folder = folder_of(options.kit, number)
        yield _LogDir(number, Path(path), options.kit, tuple(read_logs(folder, names)))


def _held(log_dir: _LogDir, *, creates: bool) -> AbstractContextManager[str | None]:
    """Hold the lock of a log directory, unless a broker has started on it since the kit was made.

    Yield why it is left alone; None: it is not. ``creates``: make the lock file where a copy has
    none.
    """
    check = partial(refuse_started, log_dir.path, log_dir.kept, log_dir.logs)
    return lock_or_reason(log_dir.path, creates=creates, check=check)


def _check_recovery_point(folders: LogFolders, log: LogKit, checkpoint: CheckpointState) -> None:
    found = checkpoint.points.get((log.topic, log.partition), 0)
    if found not in (log.recovery_point, log.next_recovery_point):
        raise SetAsideError(
            folders.log,
            f"its recovery point is {found}, {log.recovery_point} when the kit was made: make"
            " another kit",
        )


def _check_first_point(folders: LogFolders, log: LogKit, checkpoint: CheckpointState) -> None:
    """Check that the recovery point goes back too: ahead of its log it would hide a torn tail."""
    found = checkpoint.first.get((log.topic, log.partition), 0)
    if found != log.recovery_point:
        raise SetAsideError(
            folders.log,
            f"its recovery point would stay {found}, {log.recovery_point} before the kit: the note"
            " of the checkpoint is gone, set the point back by hand",
        )


def _tried(
    log_dir: _LogDir, act: _Act, refusal: str | None, at_once: int, *, is_back: bool = False
) -> Iterator[tuple[LogKit | SetAsideError, AppliedLog]]:
    """Act on each log of a kit, on several at once; an error becomes the log's status."""
    if refusal is None:
        checkpoint = state_of(log_dir.path, log_dir.kept)

    def tried(named: NamedLog) -> tuple[LogKit | SetAsideError, AppliedLog]:
        log = named.kit
        if isinstance(log, SetAsideError):
            return log, AppliedLog(str(log_dir.path), named.name, Outcome.REFUSED, message=str(log))
        if log.state != KitState.READY:
            return log, _step(log_dir, log, str(log.state), log.message)
        if refusal is not None:
            return log, _step(log_dir, log, Outcome.REFUSED, refusal)
        try:
            status = act(log_dir.folders(log.log), log, checkpoint)
            return log, _step(log_dir, log, status, is_back=is_back)
        except SetAsideError as error:
            return log, _step(log_dir, log, Outcome.REFUSED, str(error))
        except OSError as error:
            return log, _step(log_dir, log, Outcome.FAILED, str(error))

    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(tried, log_dir.logs)


def _step(
    log_dir: _LogDir, log: LogKit, status: str, message: str = "", *, is_back: bool = False
) -> AppliedLog:
    points = log.recovery_point, log.next_recovery_point
    return AppliedLog(
        log_dir=str(log_dir.path),
        log=log.log,
        status=status,
        files=len(log.files),
        cut_bytes=0 if log.cut is None else log.cut.size_bytes,
        cut_records=0 if log.cut is None else log.cut.records,
        recovery_point_before=points[is_back],
        recovery_point=points[not is_back],
        message=message,
    )
