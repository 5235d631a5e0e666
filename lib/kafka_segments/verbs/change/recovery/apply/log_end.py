"""Check where a log ends, by the headers of its last batches: from the last index entry on."""

from pathlib import Path
from typing import BinaryIO

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.plain_files import open_plain
from kafka_segments.kafka.text.names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, file_name
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.verbs.change.recovery.kit_manifest import LogKit

_ENTRY_BYTES = 8  # relative offset and position, an int32 each


def check_end(log_folder: Path, kit_folder: Path, log: LogKit) -> None:
    """Check that the last batch that stays ends where a kit cuts, and before its new offset.

    Raises:
        SetAsideError: it does not.
        OSError: a file cannot be read.
    """
    base = log.segments[-1].base_offset
    path = log_folder / file_name(base, LOG_SUFFIX)
    with open_plain(kit_folder / file_name(base, OFFSET_INDEX_SUFFIX), "rb") as index:
        entry = index.read()[-_ENTRY_BYTES:]
    position, next_offset = int.from_bytes(entry[4:], "big"), base
    with open_plain(path, "rb") as stream:
        while position < log.end_bytes:
            size_bytes, next_offset = _batch(stream, position)
            position += max(size_bytes, layout.MIN_BATCH_BYTES)
    if (position, next_offset) != (log.end_bytes, log.next_recovery_point):
        raise SetAsideError(
            path,
            f"its batches end at byte {position} and before offset {next_offset}, by the kit at"
            f" {log.end_bytes} and before {log.next_recovery_point}: make another kit",
        )


def _batch(stream: BinaryIO, position: int) -> tuple[int, int]:
    """Return the bytes of a batch, and the offset behind its last one, as its header says."""
    stream.seek(position)
    header = stream.read(layout.HEADER_BYTES)
    offset = _int(header, layout.BASE_OFFSET, 8)
    if header[layout.MAGIC : layout.UP_TO_MAGIC] >= b"\x02":
        offset += _int(header, layout.LAST_OFFSET_DELTA, 4)
    return layout.LOG_OVERHEAD + _int(header, layout.LENGTH, 4), offset + 1


def _int(header: bytes, at: int, size: int) -> int:
    return int.from_bytes(header[at : at + size], "big", signed=True)
