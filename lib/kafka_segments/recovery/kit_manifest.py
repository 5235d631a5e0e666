"""What a kit says of its log directories and logs, as JSON beside the files that it holds.

A kit is a folder::

    manifest.json              what it was made of; without it the kit is not finished
    <number>/                  a log directory, by its place in manifest.json
        <log>.json             a log: what was seen of it, what is to be put and cut
        <log>/<name>           a file to put into the log's folder
    kept/<number>/             what ``recovery apply`` found there before, for a rollback
"""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from kafka_segments.errors import UsageError
from kafka_segments.storage import backups
from kafka_segments.storage.durable_files import write_durably

MANIFEST = "manifest.json"
KEPT = "kept"
_VERSION = 1
_SUFFIX = ".json"


class KitState(StrEnum):
    """What a kit does with a log.

    ``LEFT``: the broker has no work there that a kit could do. ``REFUSED``: it has, but must do it
    itself.
    """

    READY = "ready"
    LEFT = "left"
    REFUSED = "refused"


class SeenSegment(NamedTuple):
    """A segment as it was read; ``sha256`` is None where no digest was asked for."""

    base_offset: int
    size_bytes: int
    mtime_ns: int
    sha256: str | None


class NewFile(NamedTuple):
    """A file that belongs into the log's folder."""

    name: str
    size_bytes: int
    sha256: str


class Cut(NamedTuple):
    """The torn tail of the last segment, which recovery cuts off.

    ``records`` is the sum of what the headers of the torn batches claim, where there are headers.
    """

    base_offset: int
    position: int
    size_bytes: int
    records: int
    reason: str


class LogKit(NamedTuple):
    """What a kit says of one log.

    ``segments`` are those that were read, up to the last one; ``recovery_point`` is the broker's,
    ``next_recovery_point`` the verified end of the log. ``message`` says why a log is not ready.
    """

    log: str
    topic: str
    partition: int
    state: KitState
    message: str = ""
    segments: tuple[SeenSegment, ...] = ()
    files: tuple[NewFile, ...] = ()
    cut: Cut | None = None
    recovery_point: int = 0
    next_recovery_point: int = 0

    @property
    def read_bytes(self) -> int:
        """Return the bytes of the segments that were read."""
        return sum(segment.size_bytes for segment in self.segments)


class KitManifest(NamedTuple):
    """What a kit was made of; ``made_ms`` is since 1970."""

    log_dirs: tuple[str, ...]
    made_ms: int
    has_digests: bool


def folder_of(kit: Path, number: int) -> Path:
    """Return the folder of a log directory in a kit."""
    return kit / str(number)


def kept_folder(kit: Path, number: int) -> Path:
    """Return where ``recovery apply`` keeps what it found in a log directory."""
    return kit / KEPT / str(number)


def write_manifest(kit: Path, manifest: KitManifest) -> None:
    """Write a kit's manifest: from now on the kit can be applied."""
    backups.write_manifest(kit / MANIFEST, {"version": _VERSION, **manifest._asdict()})


def read_manifest(kit: Path) -> KitManifest:
    """Return a kit's manifest.

    Raises:
        UsageError: the folder holds no finished kit, or one of a later version.
        SetAsideError: the manifest cannot be parsed.
    """
    if not (kit / MANIFEST).is_file():
        raise UsageError(
            f"{kit} has no {MANIFEST}: it is no kit, or `recovery kit` did not finish it"
        )
    version, manifest = backups.read_manifest(kit / MANIFEST, _parsed_manifest)
    if version != _VERSION:
        raise UsageError(f"{kit} is a kit of version {version}, {_VERSION} expected")
    return manifest


def _parsed_manifest(manifest: Any) -> tuple[int, KitManifest]:
    log_dirs = tuple(map(str, manifest["log_dirs"]))
    return manifest["version"], KitManifest(
        log_dirs, int(manifest["made_ms"]), bool(manifest["has_digests"])
    )


def log_path(folder: Path, log: str) -> Path:
    """Return where a kit says what it does with a log of a log directory."""
    return folder / f"{log}{_SUFFIX}"


def write_log(folder: Path, log: LogKit) -> None:
    """Write what a kit says of a log into the folder of its log directory."""
    content = log._asdict() | {
        "segments": [segment._asdict() for segment in log.segments],
        "files": [file._asdict() for file in log.files],
        "cut": log.cut and log.cut._asdict(),
    }
    write_durably(log_path(folder, log.log), backups.encoded(content), is_synced=False)


def read_log(path: Path) -> LogKit:
    """Return what a kit says of a log.

    Raises:
        SetAsideError: it cannot be parsed.
    """
    return backups.read_manifest(path, _parsed_log)


def read_logs(folder: Path) -> Iterator[LogKit]:
    """Yield what a kit says of each log of a log directory, by their names.

    Raises:
        SetAsideError: as of ``read_log``.
    """
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        yield read_log(path)


def _parsed_log(log: Any) -> LogKit:
    return LogKit(**log)._replace(
        state=KitState(log["state"]),
        segments=tuple(SeenSegment(**segment) for segment in log["segments"]),
        files=tuple(NewFile(**file) for file in log["files"]),
        cut=log["cut"] and Cut(**log["cut"]),
    )
