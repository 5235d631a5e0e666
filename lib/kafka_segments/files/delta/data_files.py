"""Whether the files with a Delta table's rows, which its log names, are there and whole.

Source: delta-io/delta PROTOCOL.md, Add File and Remove File; apache/parquet-format, File format.
"""

from collections.abc import Iterator
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs, parquet

from kafka_segments.files.delta.log import TableLog
from kafka_segments.files.storage.files import Place, first_line, opened_for_arrow, place
from kafka_segments.files.storage.hadoop_checksums import has_other_checksums

_MAGIC = b"PAR1"
OTHER_BYTES = "has other bytes than were written, by the checksums in the .crc file of its name"


def broken_data(log: TableLog, said: str = "") -> tuple[str, str] | None:
    """Return the first data file of a table that is missing, cut or spoilt, and what was found.

    Or the last checkpoint, where it cannot be read. None: nothing was found. Of each file on a
    disk the size is asked for and the end is read; all that lies between, too, where ``said`` names
    the file. A store is asked for the sizes and ends of those alone that ``said`` names.

    Args:
        log: of the table; its commits are whole.
        said: how whoever read the table failed.

    Raises:
        OSError: a file went meanwhile, the disk fails, or a store does not give a file.
    """
    live: dict[str, int] = {}
    folder, newest = place(log.table), log.checkpoint
    if newest is not None:
        try:
            live |= dict(_files_of_checkpoint(log.file(newest.name)))
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            if isinstance(error, OSError) and not folder.store.is_local:
                raise  # the store may have not answered, which spoils nothing
            return f"_delta_log/{newest.name}", f"cannot be read: {error}"
    for entry in log.commits:
        for action in log.actions(entry):
            if action.get("add"):
                live[action["add"]["path"]] = action["add"]["size"]
            if action.get("remove"):
                live.pop(action["remove"]["path"], None)
    for path, size in live.items():
        file, is_named = folder.child(unquote(path)), path.rpartition("/")[2] in said
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
