"""Advance the recovery points of a log directory, and set them back.

A note with the text before and after is on disk before the checkpoint is replaced. So a rollback
knows what to put back, and whether a broker has written a checkpoint of its own meanwhile. A note
is held against its kit: between its texts only the lines of the kit's logs differ, and as the kit
says.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.backups import is_there
from kafka_segments.files.changes.manifests import Manifest, read_manifest, write_manifest
from kafka_segments.files.changes.plain_files import is_plain_folder, open_plain, plain_status
from kafka_segments.files.storage.durable_files import (
    own_like,
    remove_temporaries,
    sync_folder,
    write_durably,
)
from kafka_segments.kafka.text.checkpoints import CLEAN_SHUTDOWN, LOCK, RECOVERY_POINT
from kafka_segments.kafka.text.names import parse_partition_folder
from kafka_segments.verbs.change.recovery.apply.advanced_checkpoint import (
    Points,
    advanced,
    points_of,
)
from kafka_segments.verbs.change.recovery.kit_manifest import LogKit, NamedLog

NOTE = "checkpoint.json"
_LATIN = "latin-1"  # any bytes are text in it, and come back


class CheckpointNote(Manifest):
    """The texts of a checkpoint before and after it was advanced.

    ``before`` None: there was no file. ``after`` has several where a kit was applied again, to logs
    that the first run left out.
    """

    remedy: ClassVar[str] = (
        f"nothing is changed: set the lines of {RECOVERY_POINT} to the recovery_point of the kit's"
        " manifests by hand, or to 0"
    )

    before: str | None
    after: tuple[str, ...]


class CheckpointState(NamedTuple):
    """The recovery points of a log directory now, and once they are set back.

    ``advanced``: the logs, by topic and partition, whose points were advanced.
    """

    points: Points
    first: Points
    advanced: frozenset[tuple[str, int]]


def refuse_started(log_dir: Path, kept: Path, logs: Sequence[NamedLog]) -> None:
    """Check that no broker has run on a log directory since its crash, or since it was changed.

    ``logs`` are those of the kit, against which a note is held.

    Raises:
        SetAsideError: one has: it was stopped cleanly, or has written a checkpoint of its own. Or
            the checkpoint is a link, or its note cannot be used.
    """
    if (log_dir / CLEAN_SHUTDOWN).exists():
        raise SetAsideError(
            log_dir, f"it has {CLEAN_SHUTDOWN}: its broker was stopped cleanly and recovers nothing"
        )
    note, text = _read_note(kept), _text(log_dir)
    if note is None:
        return
    _check_note(kept / NOTE, note, logs)
    if text not in (note.before, *note.after):
        raise SetAsideError(
            log_dir / RECOVERY_POINT,
            "it has changed since `recovery apply`: a broker has run since, nothing is changed",
        )


def _check_note(path: Path, note: CheckpointNote, logs: Sequence[NamedLog]) -> None:
    before = points_of(note.before)
    kits = {parse_partition_folder(named.name): named.kit for named in logs}
    by_log = {(found.topic, found.partition): kit for found, kit in kits.items() if found}
    for text in note.after:
        changed = {key: at for key, at in points_of(text).items() if before.get(key) != at}
        for key, point in changed.items():
            kit, first = by_log.get(key), before.get(key, 0)
            if not 0 <= first <= point or not _is_of(kit, first, point):
                said = f"{key[0]!a} {key[1]}: {first} before and {point} after"
                raise SetAsideError(path, f"{said}, not as the kit says; {note.remedy}")
        if advanced(note.before, changed) != text:
            reason = f"its texts differ by more than recovery points; {note.remedy}"
            raise SetAsideError(path, reason)


def _is_of(kit: LogKit | SetAsideError | None, before: int, after: int) -> bool:
    """Tell whether a kit advances a log so, as far as its manifest can be used."""
    if not isinstance(kit, LogKit):
        return kit is not None
    return (kit.recovery_point, kit.next_recovery_point) == (before, after)


def state_of(log_dir: Path, kept: Path) -> CheckpointState:
    """Return the recovery points of a log directory, as its broker reads them."""
    points, note = points_of(_text(log_dir)), _read_note(kept)
    if note is None:
        return CheckpointState(points, points, frozenset())
    first = points_of(note.before)
    after = {key: point for text in note.after for key, point in points_of(text).items()}
    advanced_logs = frozenset(key for key, point in after.items() if first.get(key) != point)
    return CheckpointState(points, first, advanced_logs)


def advance(log_dir: Path, kept: Path, points: Points) -> None:
    """Advance the recovery points of logs whose files are all on disk.

    Raises:
        OSError: the file system refused a step. The checkpoint is either as it was or advanced.
    """
    remove_temporaries(log_dir, name=RECOVERY_POINT)
    text = _text(log_dir)
    note = _read_note(kept) or CheckpointNote(before=text, after=())
    after = advanced(text, points)
    if after == text:
        return
    kept.mkdir(parents=True, exist_ok=True)
    write_manifest(kept / NOTE, note.model_copy(update={"after": (*note.after, after)}))
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
    is_kept = is_plain_folder(kept.parent) and is_plain_folder(kept)
    return read_manifest(kept / NOTE, CheckpointNote) if is_kept and is_there(kept / NOTE) else None


def _text(log_dir: Path) -> str | None:
    try:
        with open_plain(log_dir / RECOVERY_POINT, "rb") as stream:
            return stream.read().decode(_LATIN)
    except FileNotFoundError:
        return None


def _replace(log_dir: Path, text: str) -> None:
    path = log_dir / RECOVERY_POINT
    like = path if path.exists() else log_dir / LOCK

    def like_others(whole: Path) -> None:
        if like.exists():
            plain_status(like)
            own_like(whole, like)

    write_durably(path, text.encode(_LATIN), finish=like_others)
