"""Read a segment's batches chunk by chunk, in bounded memory whatever its length fields say."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from kafka_segments.errors import FileChangedError
from kafka_segments.files.segments.bounds import Bounds
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.crc import CRC_START, HAS_CPU_CRC
from kafka_segments.kafka.wire.ends import BAD_CRC, BAD_SIZE, describe_end
from kafka_segments.kafka.wire.reading import MAX_FILE_BYTES, ReadInto

_CHUNK_BYTES = 4 * 1024 * 1024
_HEADERS_CHUNK_BYTES = 64 * 1024
_MOST_BATCHES = 64 * 1024


@dataclass(frozen=True)
class ChunkOptions:
    """How batches are read.

    Attributes:
        needs_body: A batch comes with its bytes; else with its header alone.
        check_crc: Checksums are verified, so every byte is read. Otherwise, without bodies, what
            lies between headers is jumped over.
        max_batch_bytes: A larger batch comes without its bytes.
        bounds: Batches that lie outside are left out.
    """

    needs_body: bool
    check_crc: bool = True
    max_batch_bytes: int = 256 * 1024 * 1024
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True)
class Chunk:
    """Some batches of a segment, in order; valid until the next chunk is read.

    Attributes:
        batches: A column for each batch (see ``wire.batches``).
        data: Bytes of the file that hold the batches. None where bodies are not needed, and for a
            single batch above ``max_batch_bytes``.
        data_position: Byte of the file that ``data`` starts at.
        end_reason: In the last chunk, why the batches end before the file does; None: they do not.
        end_position: Byte of the file at which they end.
    """

    batches: wire.Batches
    data: wire.Bytes | None = None
    data_position: int = 0
    end_reason: str | None = None
    end_position: int = 0


class ChunkReader:
    """Reads segments one after another, with buffers that are made once."""

    def __init__(self, options: ChunkOptions) -> None:
        self._options = options
        whole = options.needs_body or options.check_crc
        self._buffer = np.empty(_CHUNK_BYTES if whole else _HEADERS_CHUNK_BYTES, dtype=np.uint8)
        self._batches = np.empty((wire.BATCH_FIELDS, _MOST_BATCHES), dtype=np.int64)
        self._count = 0

    def read(
        self,
        read_into: ReadInto,
        *,
        size_bytes: int,
        written_bytes: int | None = None,
        start: int = 0,
    ) -> Iterator[Chunk]:
        """Yield the batches that recovery would keep and the bounds let through.

        Zeros behind the last batch, as preallocation leaves them, are a normal end. Those behind
        ``written_bytes`` are not read. ``start``: the byte at which the first batch begins.

        Raises:
            FileChangedError: the file ended before ``size_bytes``.
            OSError: whatever ``read_into`` raises.
        """
        if size_bytes > MAX_FILE_BYTES:
            reason = f"{size_bytes} bytes, Kafka opens at most {MAX_FILE_BYTES}"
            yield Chunk(self._batches[:, :0], end_reason=reason)
            return
        walk = self._new_walk(size_bytes)
        walk.next_position = start
        self._count = 0
        try:
            yield from self._walk(read_into, walk)
        except (OSError, FileChangedError):
            yield from self._given_away()
            raise
        yield from self._given_away()
        written = size_bytes if written_bytes is None else min(written_bytes, size_bytes)
        if not self._is_preallocated(read_into, walk, written):
            yield self._end(walk)

    def _walk(self, read_into: ReadInto, walk: wire.BatchWalk) -> Iterator[Chunk]:
        """Yield chunks up to the end; without bodies the last batches are not yielded yet."""
        buffer, size_bytes = self._buffer, walk.end
        while True:
            position = walk.next_position
            length = min(len(buffer), size_bytes - position)
            _fill(read_into, position, buffer[:length], size_bytes)
            walk.status = wire.ROOM_FULL
            while walk.status == wire.ROOM_FULL:
                self._count = wire.walk_batches(
                    buffer, length, position, self._batches, self._count, walk
                )
                if self._options.needs_body or walk.status == wire.ROOM_FULL:
                    yield from self._given_away(buffer[:length], position)
            if walk.status != wire.WANTS_BYTES:
                return
            wanted = walk.found
            if wanted <= len(buffer):
                continue
            if wanted <= self._most_bytes():
                buffer = np.empty(wanted, dtype=np.uint8)
                continue
            yield from self._given_away()
            yield from self._pass_over(read_into, walk, wanted)
            if walk.status == BAD_CRC:
                return

    def _new_walk(self, size_bytes: int) -> wire.BatchWalk:
        options, bounds = self._options, self._options.bounds
        walk = wire.new_walk(
            size_bytes=size_bytes, check_crc=options.check_crc, needs_body=options.needs_body
        )
        walk.low_offset, walk.high_offset = bounds.low_offset, bounds.high_offset
        walk.low_timestamp = bounds.low_timestamp
        walk.high_timestamp = bounds.high_timestamp
        return walk

    def _most_bytes(self) -> int:
        return self._options.max_batch_bytes if self._options.needs_body else len(self._buffer)

    def _given_away(self, data: wire.Bytes | None = None, position: int = 0) -> Iterator[Chunk]:
        """Yield the batches found so far, if any, and start the next chunk."""
        count, self._count = self._count, 0
        if count:
            yield Chunk(
                self._batches[:, :count], data if self._options.needs_body else None, position
            )

    def _end(self, walk: wire.BatchWalk) -> Chunk:
        position = walk.next_position
        reason = describe_end(
            walk.status,
            found=walk.found,
            expected=walk.expected,
            left=walk.end - position,
        )
        return Chunk(self._batches[:, :0], end_reason=reason, end_position=position)

    def _pass_over(
        self, read_into: ReadInto, walk: wire.BatchWalk, batch_bytes: int
    ) -> Iterator[Chunk]:
        """Yield a batch too large for memory by its header; verify its checksum in pieces."""
        position, size_bytes = walk.next_position, walk.end
        header = np.empty(min(layout.HEADER_BYTES, batch_bytes), dtype=np.uint8)
        _fill(read_into, position, header, size_bytes)
        alone = walk.copy()
        alone.checks_crc = alone.needs_body = 0
        batches = np.empty((wire.BATCH_FIELDS, 1), dtype=np.int64)
        count = wire.walk_batches(header, len(header), position, batches, 0, alone)
        if self._options.check_crc:
            is_v2 = bool(header[layout.MAGIC : layout.UP_TO_MAGIC].view(np.int8) >= layout.MAGIC_V2)
            crc_at = layout.CRC if is_v2 else layout.LEGACY_CRC
            stored = int.from_bytes(header[crc_at : crc_at + 4], "big")
            start = position + (layout.CRC_FROM if is_v2 else layout.LEGACY_CRC_FROM)
            crc = self._crc(read_into, start, position + batch_bytes, is_v2)
            if crc != stored:
                walk.status, walk.found = BAD_CRC, crc
                walk.expected = stored
                return
        walk.next_position = position + batch_bytes
        if count:
            yield Chunk(batches)

    def _crc(self, read_into: ReadInto, start: int, end: int, is_v2: bool) -> int:
        crc = CRC_START
        for position in range(start, end, len(self._buffer)):
            piece = self._buffer[: end - position]
            _fill(read_into, position, piece, end)
            crc = int(wire.crc_piece(piece, 0, len(piece), crc, is_v2, HAS_CPU_CRC))
        return crc ^ CRC_START

    def _is_preallocated(self, read_into: ReadInto, walk: wire.BatchWalk, end: int) -> bool:
        """Tell whether a walk that ended at a batch size of 0 has only zeros behind it."""
        if walk.status != BAD_SIZE or walk.found != 0:
            return False
        for position in range(walk.next_position, end, len(self._buffer)):
            piece = self._buffer[: end - position]
            _fill(read_into, position, piece, end)
            if piece.any():
                return False
        return True


def _fill(read_into: ReadInto, position: int, piece: wire.Bytes, size_bytes: int) -> None:
    read = read_into(position, memoryview(piece)) if len(piece) else 0
    if read < len(piece):
        raise FileChangedError(position + read, size_bytes)
