"""The CRC-32 of a file's pieces that Hadoop keeps beside each file on a disk, as ``.NAME.crc``.

They cover all bytes, also the footer of a Parquet file, of which no checksum of a page tells.
Hadoop itself refuses a file that has other bytes, with an error that names no step.

Source: Hadoop's ChecksumFileSystem, ChecksumFSInputChecker, DataChecksum.
"""

import struct
import zlib
from pathlib import Path

from kafka_segments.files.storage.durable_files import write_durably

_HEADER = struct.Struct(">4sI")
_MAGIC = b"crc\0"
_PIECE = 512
_MOST_READ = 4 * 1024 * 1024


def checksums_beside(path: Path | str) -> Path:
    """Return the path of the file that has the checksums of a file."""
    file = Path(path)
    return file.with_name(f".{file.name}.crc")


def write_checksums(path: Path | str, data: bytes) -> None:
    """Write the checksums of a file that is to have these bytes, and wait for the disk.

    Raises:
        OSError: they cannot be written.
    """
    sums = _sums_of(memoryview(data), _PIECE)
    write_durably(checksums_beside(path), _HEADER.pack(_MAGIC, _PIECE) + sums, is_synced=True)


def has_other_checksums(path: Path | str) -> bool:
    """Tell whether the last 4 MiB of a file have not the checksums that lie beside it.

    False where none lie there, or what lies there are no checksums of a file of this size: so does
    Hadoop, which passes over them.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        noted = checksums_beside(path).read_bytes()
    except OSError:
        return False
    if len(noted) < _HEADER.size:
        return False
    magic, piece = _HEADER.unpack_from(noted)
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        if magic != _MAGIC or not piece or len(noted) != _HEADER.size + 4 * -(-size // piece):
            return False
        first = max(0, size - _MOST_READ) // piece
        file.seek(first * piece)
        data = memoryview(file.read(size - first * piece))
    return _sums_of(data, piece) != noted[_HEADER.size + 4 * first :]


def _sums_of(data: memoryview, piece: int) -> bytes:
    sums = (zlib.crc32(data[at : at + piece]) for at in range(0, len(data), piece))
    return b"".join(crc.to_bytes(4, "big") for crc in sums)
