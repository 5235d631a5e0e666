"""Snappy as Java's ``SnappyInputStream`` reads it: a bare block, or the framing of snappy-java.

The framing, integers big-endian::

    82 53 4e 41 50 50 59 00   magic
    version                   int32
    compatible version        int32
    then, again and again:
      block length            int32
      block                   snappy

1. Fewer than 4 bytes behind the last block are passed over. A block of length 0 is none.
2. Streams may follow one another; only of the later ones the version must be 1 or more.
3. What does not begin with a whole header is one block.

Source: SnappyInputStream (snappy-java 1.1.10).
"""

import cramjam

from kafka_segments.kafka.codecs.streams import DecompressionError, Piece, Stored, beyond

XERIAL_MAGIC = b"\x82SNAPPY\x00"
_HEADER_BYTES = 16
_MAGIC_HEAD = XERIAL_MAGIC[:4]
_MOST_BLOCK_BYTES = 512 * 1024 * 1024
_MOST_PLAIN_BYTES = 2**31 - 1
_MOST_GROWTH = 22  # a copy of 64 bytes takes 3


class SnappyStream:
    """Reads blocks of snappy."""

    def __init__(self, stored: Stored, most_bytes: int) -> None:
        """Read the header, and a bare block as a whole.

        Raises:
            DecompressionError: Java throws, or a block holds more than ``most_bytes``.
        """
        self._stored = stored
        self._most_bytes = most_bytes
        self._plain = memoryview(b"")
        self._is_at_end = False
        header = bytes(stored.take(_HEADER_BYTES))
        if not header:
            raise DecompressionError("snappy: there are no compressed bytes")
        if len(header) < _HEADER_BYTES or not header.startswith(XERIAL_MAGIC):
            self._is_at_end = True
            self._plain = _block(header + bytes(stored.take(stored.left)), most_bytes)

    def read(self, most: int) -> Piece | None:
        """Return the next bytes, of as many blocks as there are up to ``most``; None at the end."""
        pieces = []
        while most:
            if not self._plain:
                if not self._begins_block():
                    break
                continue
            pieces.append(self._plain[:most])
            self._plain = self._plain[most:]
            most -= len(pieces[-1])
        return b"".join(pieces) if pieces else None

    def has_more(self) -> bool:
        """Tell whether bytes are left of a block, or of the next one, which is begun."""
        return bool(self._plain) or (self._begins_block() and bool(self._plain))

    def _begins_block(self) -> bool:
        """Decompress the next block; False: there is none, or bytes that are no header stand there.

        Behind such bytes the next call goes on.
        """
        while not self._is_at_end:
            head = bytes(self._stored.take(4))
            if len(head) < 4:
                self._is_at_end = True
                break
            if head != _MAGIC_HEAD:
                block = self._stored.take(self._checked_length(head))
                self._plain = _block(block, self._most_bytes)
                return True
            if not self._is_header(head):
                break
        return False

    def _is_header(self, head: bytes) -> bool:
        header = head + bytes(self._stored.take(_HEADER_BYTES - len(head)))
        if len(header) < _HEADER_BYTES:
            raise DecompressionError("snappy: the compressed bytes end within a header")
        version = int.from_bytes(header[8:12], "big", signed=True)
        if header.startswith(XERIAL_MAGIC) and version < 1:
            raise DecompressionError(
                f"snappy: a later stream has version {version}, 1 is the least"
            )
        return header.startswith(XERIAL_MAGIC)

    def _checked_length(self, head: bytes) -> int:
        length, left = int.from_bytes(head, "big", signed=True), self._stored.left
        if not 0 <= length <= min(left, _MOST_BLOCK_BYTES):
            raise DecompressionError(f"snappy: a block says {length} bytes, {left} are left")
        return length


def _block(data: Piece, most_bytes: int) -> memoryview:
    if not len(data):
        raise DecompressionError("snappy: a block has no bytes")
    try:
        length = cramjam.snappy.decompress_raw_len(data)
        if length > min(_MOST_PLAIN_BYTES, _MOST_GROWTH * len(data)):
            raise DecompressionError(f"snappy: {len(data)} bytes cannot hold {length}")
        if length > most_bytes:
            raise beyond(most_bytes)
        return memoryview(bytes(cramjam.snappy.decompress_raw(data)))
    except cramjam.DecompressionError as error:
        raise DecompressionError(f"snappy: {error}") from None
