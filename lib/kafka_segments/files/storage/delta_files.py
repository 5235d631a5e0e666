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
from kafka_segments.files.storage.files import Place, place
from kafka_segments.files.storage.local_folder import FileEntry

_MAGIC = b"PAR1"


def broken_data(table: str, entries: list[FileEntry]) -> tuple[str, str] | None:
    """Return the first data file of a table that is missing, cut or spoilt, and what was found.

    Or the last checkpoint, where it cannot be read. None: nothing was found. Of each file the size
    is asked for and the end is read, not all that lies between.

    Args:
        table: it lies on a disk of this machine.
        entries: what lies in its log; the commits among them are whole.

    Raises:
        OSError: a file went meanwhile, or the disk fails.
    """
    live: dict[str, int] = {}
    log = log_of(table)
    checkpoints = [entry.name for entry in entries if CHECKPOINT.fullmatch(entry.name)]
    if checkpoints:
        newest = max(checkpoints)
        try:
            live |= dict(_files_of_checkpoint(log.child(newest)))
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            return f"_delta_log/{newest}", f"cannot be read: {error}"
    for entry in commits_since_checkpoint(entries):
        for action in read_actions(log.child(entry.name)):
            if action.get("add"):
                live[action["add"]["path"]] = action["add"]["size"]
            if action.get("remove"):
                live.pop(action["remove"]["path"], None)
    for path, size in live.items():
        why = _why_not_whole(place(table).child(unquote(path)), size)
        if why is not None:
            return path, why
    return None


def _why_not_whole(file: Place, size: int) -> str | None:
    found = file.filesystem.get_file_info(file.path)
    if found.type != fs.FileType.File:
        return "is not there"
    if found.size != size:
        return f"has {found.size} bytes, its commit says {size}"
    with file.filesystem.open_input_file(file.path) as stream:
        stream.seek(max(0, size - len(_MAGIC)))
        return None if stream.read() == _MAGIC else "is spoilt: it does not end as Parquet does"


def _files_of_checkpoint(file: Place) -> Iterator[tuple[str, int]]:
    with file.filesystem.open_input_file(file.path) as stream:
        for row in parquet.ParquetFile(stream).read(columns=["add"]).to_pylist():
            if row["add"] is not None:
                yield row["add"]["path"], row["add"]["size"]
