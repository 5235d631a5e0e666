"""The part of a segment that is whole batches: where it ends, and a digest of it."""

from typing import NamedTuple

from kafka_segments.errors import FileChangedError
from kafka_segments.files.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.files.segments.decoding import MOST_BATCH_BYTES
from kafka_segments.files.storage.files import Place, open_segment
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire.crc import CRC_START, HAS_CPU_CRC


class WholeBatches(NamedTuple):
    """What a segment has up to the end of its last whole batch.

    Attributes:
        end: the byte behind that batch; None: it is not known, as a batch is too large to be held,
            or the file cannot be read.
        crc32c: of the bytes up to there.
        has_start: whether the bytes up to a position have the CRC-32C that was asked for.
    """

    end: int | None = None
    crc32c: int | None = None
    has_start: bool = False


class WholeBatchReader:
    """Reads one segment after another, with a buffer that is made once."""

    def __init__(self, *, most_batch_bytes: int = MOST_BATCH_BYTES) -> None:
        options = ChunkOptions(needs_body=True, max_batch_bytes=most_batch_bytes)
        self._reader = ChunkReader(options)

    def read(
        self, file: Place, *, size_bytes: int, start: int | None, start_crc32c: int | None
    ) -> WholeBatches:
        """Return where the whole batches among the first bytes of a file end, and their digest.

        ``start`` and ``start_crc32c``: the position to which the bytes are to have this digest;
        None: no digest is asked for.
        """
        try:
            with open_segment(file) as opened:
                digest = _Digest(start)
                for chunk in self._reader.read(
                    opened.read_into,
                    size_bytes=min(size_bytes, opened.size_bytes),
                    written_bytes=opened.written_bytes,
                ):
                    if not digest.goes_on(chunk):
                        return WholeBatches()
                opened.check_unchanged()
        except (OSError, FileChangedError):
            return WholeBatches()
        has_start = start is not None and digest.at_start == start_crc32c
        return WholeBatches(digest.end, digest.crc32c, has_start)


class _Digest:
    """The CRC-32C of whole batches, and what it was at a position."""

    def __init__(self, start: int | None) -> None:
        self.end = 0
        self._crc = CRC_START
        self._start = start
        self.at_start = self.crc32c if start == 0 else None

    @property
    def crc32c(self) -> int:
        """Of the bytes up to ``end``."""
        return self._crc ^ CRC_START

    def goes_on(self, chunk: Chunk) -> bool:
        """Take the batches of a chunk in; False: their bytes are not there."""
        if not chunk.batches.shape[1]:
            return True
        if chunk.data is None:
            return False
        last = chunk.batches[:, -1]
        until = int(last[wire.BATCH_POSITION] + last[wire.BATCH_SIZE_BYTES])
        if self._start is not None and self.end < self._start <= until:
            self._take(chunk.data, chunk.data_position, self._start)
            self.at_start = self.crc32c
        self._take(chunk.data, chunk.data_position, until)
        return True

    def _take(self, data: wire.Bytes, position: int, until: int) -> None:
        first, behind = self.end - position, until - position
        self._crc = int(wire.crc_piece(data, first, behind, self._crc, True, HAS_CPU_CRC))
        self.end = until
