"""Whether the files with a Delta table's rows, which its log names, are there and whole.

Source: delta-io/delta PROTOCOL.md, Add File and Remove File; apache/parquet-format, File format.
"""

from collections.abc import Iterator
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs, parquet

from kafka_segments.files.storage.delta_log import (
    CHECKPOINT,
    commits_since_checkpoint,
    log_of,
    read_actions,
)
from kafka_segments.files.storage.files import Place, first_line, opened_for_arrow, place
from kafka_segments.files.storage.hadoop_checksums import has_other_checksums
from kafka_segments.files.storage.local_folder import FileEntry

_MAGIC = b"PAR1"
OTHER_BYTES = "has other bytes than were written, by the checksums in the .crc file of its name"


def broken_data(table: str, entries: list[FileEntry], said: str = "") -> tuple[str, str] | None:
    """Return the first data file of a table that is missing, cut or spoilt, and what was found.

    Or the last checkpoint, where it cannot be read. None: nothing was found. Of each file on a
    disk the size is asked for and the end is read; all that lies between, too, where ``said`` names
    the file. A store is asked for the sizes and ends of those alone that ``said`` names.

    Args:
        table: its URI.
        entries: what lies in its log; the commits among them are whole.
        said: how whoever read the table failed.

    Raises:
        OSError: a file went meanwhile, the disk fails, or a store does not give a file.
    """
    live: dict[str, int] = {}
    log = log_of(table)
    checkpoints = [entry.name for entry in entries if CHECKPOINT.fullmatch(entry.name)]
    if checkpoints:
        newest = max(checkpoints)
        try:
            live |= dict(_files_of_checkpoint(log.child(newest)))
        except (pa.ArrowException, KeyError, ValueError) as error:
            return f"_delta_log/{newest}", f"cannot be read: {error}"
        except OSError as error:
            if not log.store.is_local:  # it may have not answered, which spoils nothing
                raise
            return f"_delta_log/{newest}", f"cannot be read: {error}"
    for entry in commits_since_checkpoint(entries):
        for action in read_actions(log.child(entry.name)):
            if action.get("add"):
                live[action["add"]["path"]] = action["add"]["size"]
            if action.get("remove"):
                live.pop(action["remove"]["path"], None)
    for path, size in live.items():
        file, is_named = place(table).child(unquote(path)), path.rpartition("/")[2] in said
        if not (is_named or file.store.is_local):
            continue
        why = _why_not_whole(file, size)
        if why is None and is_named and file.store.is_local:
            why = _why_unreadable(file)
        if why is not None:
            return path, why
    return None


def why_of_other_size(found_bytes: int, size_bytes: int) -> str | None:
    """Return in words that a data file has not the bytes that its commit says; None: it has."""
    if found_bytes == size_bytes:
        return None
    return f"has {found_bytes} bytes, its commit says {size_bytes}"


def _why_not_whole(file: Place, size: int) -> str | None:
    found = file.filesystem.get_file_info(file.path)
    if found.type != fs.FileType.File:
        return "is not there"
    why = why_of_other_size(found.size, size)
    if why is not None:
        return why
    with opened_for_arrow(file) as stream:
        stream.seek(max(0, size - len(_MAGIC)))
        if stream.read() != _MAGIC:
            return "is spoilt: it does not end as Parquet does"
    return OTHER_BYTES if file.store.is_local and has_other_checksums(file.path) else None


def _why_unreadable(file: Place) -> str | None:
    try:
        with opened_for_arrow(file) as stream:
            for _ in parquet.ParquetFile(stream, page_checksum_verification=True).iter_batches():
                pass
    except (OSError, pa.ArrowException) as error:
        return f"is spoilt: {first_line(error)}"
    return None


def _files_of_checkpoint(file: Place) -> Iterator[tuple[str, int]]:
    with opened_for_arrow(file) as stream:
        for row in parquet.ParquetFile(stream).read(columns=["add"]).to_pylist():
            if row["add"] is not None:
                yield row["add"]["path"], row["add"]["size"]
