"""Read a segment for a kit: verify every batch, and write its index files into the kit."""

from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from kafka_segments.errors import FileChangedError
from kafka_segments.files.segments.format_files import Around, Files, FormatFiles
from kafka_segments.files.storage.durable_files import sha256_of, write_durably
from kafka_segments.files.storage.files import OpenSegment, first_line, open_segment, place
from kafka_segments.files.storage.local_folder import mtime_ns_of
from kafka_segments.kafka.broker_rules.start.cuts import TORN
from kafka_segments.kafka.broker_rules.start.torn_tail import Tail, read_tail
from kafka_segments.kafka.index.segment.recovered_segment import (
    Damage,
    DamageKind,
    SegmentRecovery,
    SegmentSummary,
)
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.text.names import LOG_SUFFIX, file_name
from kafka_segments.kafka.wire.header_layout import MAGIC_V2
from kafka_segments.verbs.change.recovery.kit_manifest import NewFile, SeenSegment


class ScannedSegment(NamedTuple):
    """A segment that was read; ``tail`` is what stands behind its last sound batch, if anything.

    ``has_old_messages``: it has messages v0 or v1, whose torn tails cannot be told from damage.
    """

    seen: SeenSegment
    summary: SegmentSummary
    files: tuple[NewFile, ...]
    damage: Damage | None
    tail: Tail | None
    has_old_messages: bool


class KitScanner:
    """Reads segments one after another; its buffers are made once a task."""

    def __init__(self, options: RecoveryOptions, *, has_digests: bool) -> None:
        """Prepare to read; ``has_digests``: also note the SHA-256 of each segment."""
        self._recoverer = SegmentRecoverer(options)
        self._formats = FormatFiles()
        self._has_digests = has_digests

    def scan(self, folder: Path, base_offset: int, into: Path | None) -> ScannedSegment | str:
        """Read a segment and write its ``.index`` and ``.timeindex`` into the kit.

        Return a text that says why if it cannot be read. ``into`` None: its files stay as they are.

        Raises:
            OSError: the files cannot be written.
        """
        log = folder / file_name(base_offset, LOG_SUFFIX)
        try:
            scanned, made = self._read(log, base_offset)
        except (OSError, FileChangedError) as error:
            return f"segment {base_offset}: {first_line(error)}"
        files = (
            put_into(into, file_name(base_offset, suffix), data)
            for suffix, data in made.items()
            if into is not None and data is not None
        )
        return scanned._replace(files=tuple(files))

    def _read(self, log: Path, base_offset: int) -> tuple[ScannedSegment, Files]:
        status = log.stat()
        with open_segment(place(str(log))) as segment:
            found = self._recoverer.recover(
                segment.read_into,
                size_bytes=status.st_size,
                base_offset=base_offset,
                written_bytes=segment.written_bytes,
            )
            made = self._formats.make(
                found, segment.read_into, base_offset=base_offset, around=Around()
            )
            tail = _tail(segment, found)
        scanned = ScannedSegment(
            seen=SeenSegment(
                base_offset=base_offset,
                size_bytes=status.st_size,
                mtime_ns=mtime_ns_of(status),
                sha256=sha256_of(log) if self._has_digests else None,
            ),
            summary=found.summary(base_offset),
            files=(),
            damage=found.damage,
            tail=tail,
            has_old_messages=any(magic < MAGIC_V2 for magic in found.magics),
        )
        return scanned, made.files


def _tail(segment: OpenSegment, found: SegmentRecovery) -> Tail | None:
    """Return what stands behind the last sound batch; None: nothing torn does."""
    if found.damage is None or found.damage.kind not in TORN:
        return None
    if found.damage.kind == DamageKind.PREALLOCATED_TAIL:  # zeros, which have been looked at
        return Tail(0, None)
    end = found.valid_bytes + found.truncated_bytes
    return read_tail(
        segment.read_into, start=found.valid_bytes, end=end, next_offset=found.next_offset
    )


def put_into(folder: Path, name: str, data: bytes) -> NewFile:
    """Write a file of a kit; return what the manifest says of it.

    Raises:
        OSError: it cannot be written.
    """
    write_durably(folder / name, data, is_synced=False)
    return NewFile(name=name, size_bytes=len(data), sha256=sha256(data).hexdigest())
