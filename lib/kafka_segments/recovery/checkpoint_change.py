"""Advance the recovery points of a log directory, and set them back.

A note with the text before and after is on disk before the checkpoint is replaced. So a rollback
knows what to put back, and whether a broker has written a checkpoint of its own meanwhile.
"""

from pathlib import Path
from typing import Any, NamedTuple

from kafka_segments.errors import SetAsideError
from kafka_segments.recovery.advanced_checkpoint import Points, advanced, points_of
from kafka_segments.storage import backups
from kafka_segments.storage.durable_files import (
    own_like,
    remove_temporaries,
    sync_folder,
    write_durably,
)
from kafka_segments.wire.checkpoints import CLEAN_SHUTDOWN, LOCK, RECOVERY_POINT

NOTE = "checkpoint.json"
_LATIN = "latin-1"  # any bytes are text in it, and come back


class CheckpointNote(NamedTuple):
    """The texts of a checkpoint before and after it was advanced.

    ``before`` None: there was no file. ``after`` has several where a kit was applied again, to logs
    that the first run left out.
    """

    before: str | None
    after: tuple[str, ...]


def refuse_started(log_dir: Path, kept: Path) -> None:
    """Check that no broker has run on a log directory since its crash, or since it was changed.

    Raises:
        SetAsideError: one has: it was stopped cleanly, or has written a checkpoint of its own.
    """
    if (log_dir / CLEAN_SHUTDOWN).exists():
        raise SetAsideError(
            log_dir, f"it has {CLEAN_SHUTDOWN}: its broker was stopped cleanly and recovers nothing"
        )
    note = _read_note(kept)
    if note is not None and _text(log_dir) not in (note.before, *note.after):
        raise SetAsideError(
            log_dir / RECOVERY_POINT,
            "it has changed since `recovery apply`: a broker has run since, nothing is changed",
        )


def recovery_points(log_dir: Path) -> Points:
    """Return the recovery points of a log directory, as its broker reads them."""
    return points_of(_text(log_dir))


def advance(log_dir: Path, kept: Path, points: Points) -> None:
    """Advance the recovery points of logs whose files are all on disk.

    Raises:
        OSError: the file system refused a step. The checkpoint is either as it was or advanced.
    """
    remove_temporaries(log_dir, name=RECOVERY_POINT)
    text = _text(log_dir)
    note = _read_note(kept) or CheckpointNote(text, ())
    after = advanced(text, points)
    if after == text:
        return
    kept.mkdir(parents=True, exist_ok=True)
    note = note._replace(after=(*note.after, after))
    backups.write_manifest(kept / NOTE, note._asdict())
    _replace(log_dir, after)


def set_back(log_dir: Path, kept: Path) -> bool:
    """Put back the checkpoint as it was; return whether it had changed.

    Raises:
        OSError: the file system refused a step; run it again.
    """
    remove_temporaries(log_dir, name=RECOVERY_POINT)
    note = _read_note(kept)
    if note is None or _text(log_dir) == note.before:
        return False
    if note.before is None:
        (log_dir / RECOVERY_POINT).unlink()
        sync_folder(log_dir)
    else:
        _replace(log_dir, note.before)
    return True


def forget(kept: Path) -> None:
    """Remove the note of a checkpoint that was put back."""
    (kept / NOTE).unlink(missing_ok=True)


def _read_note(kept: Path) -> CheckpointNote | None:
    return backups.read_manifest(kept / NOTE, _parsed) if (kept / NOTE).exists() else None


def _parsed(note: Any) -> CheckpointNote:
    return CheckpointNote(note["before"], tuple(map(str, note["after"])))


def _text(log_dir: Path) -> str | None:
    try:
        return (log_dir / RECOVERY_POINT).read_bytes().decode(_LATIN)
    except FileNotFoundError:
        return None


def _replace(log_dir: Path, text: str) -> None:
    path = log_dir / RECOVERY_POINT
    like = path if path.exists() else log_dir / LOCK

    def like_others(whole: Path) -> None:
        if like.exists():
            own_like(whole, like)

    write_durably(path, text.encode(_LATIN), finish=like_others)
