"""Members of gzip, one after another, as Java's ``GZIPInputStream`` reads them.

1. Reserved flags are passed over; the checksum of a header is verified if there is one.
2. Behind a member another one is looked for if bytes are left that Java has not buffered yet, or if
   more than 26 of the buffered ones are left, the member's own checksum and size among them.
3. What is no header there ends the stream quietly, whatever it is. A member that begins must be
   whole and sound.

Source: GZIPInputStream, InflaterInputStream (Java 11 to 22); RFC 1952.
"""

import zlib

from kafka_segments.kafka.codecs.streams import DecompressionError, Piece, Stored

_MAGIC = b"\x1f\x8b"
_DEFLATE = 8
_HEADER_CHECKSUM, _EXTRA, _NAME, _COMMENT = 0x02, 0x04, 0x08, 0x10
_BUFFER_BYTES = 8192  # what Kafka has Java buffer
_LEAST_BEHIND = 26  # a trailer, a header and a trailer


class _NoHeaderError(DecompressionError):
    """No header of a member begins there, or none that is whole."""


class GzipStream:
    """Reads members of gzip."""

    def __init__(self, stored: Stored) -> None:
        """Read the header of the first member.

        Raises:
            DecompressionError: Java throws.
        """
        self._stored = stored
        self._buffered: Piece = b""
        self._is_at_end = False
        self._header_crc = self._crc = self._plain_bytes = 0
        self._begin()

    def read(self, most: int) -> Piece | None:
        """Return the next bytes of a member, None at the end."""
        while not self._is_at_end:
            if self._inflater.eof:
                self._is_at_end = self._is_last()
                continue
            piece = self._inflated(most)
            if piece:
                return piece
            if not self._inflater.eof:
                self._fill()
        return None

    def has_more(self) -> bool:
        """Tell whether the end has not been come to."""
        return not self._is_at_end

    def _inflated(self, most: int) -> bytes:
        try:
            piece = self._inflater.decompress(self._buffered, most)
        except zlib.error as error:
            raise DecompressionError(f"gzip: {error}") from None
        inflater = self._inflater
        self._buffered = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        self._crc = zlib.crc32(piece, self._crc)
        self._plain_bytes += len(piece)
        return piece

    def _fill(self) -> None:
        self._buffered = self._stored.take(_BUFFER_BYTES)
        if not self._buffered:
            raise DecompressionError("gzip: the compressed bytes end within a member")

    def _is_last(self) -> bool:
        """Check the trailer of a member, and begin the next one if there is one."""
        buffered_bytes = len(self._buffered)
        if self._little_endian(4) != self._crc:
            raise DecompressionError("gzip: the checksum of a member does not fit")
        if self._little_endian(4) != self._plain_bytes & 0xFFFFFFFF:
            raise DecompressionError("gzip: the size of a member does not fit")
        if not self._stored.left and buffered_bytes <= _LEAST_BEHIND:
            return True
        try:
            self._begin()
        except _NoHeaderError:
            return True
        return False

    def _begin(self) -> None:
        """Read the header of a member."""
        self._header_crc = 0
        if self._take(2) != _MAGIC:
            raise _NoHeaderError("gzip: no member begins with its magic number")
        method, flags = self._take(1)[0], self._take(1)[0]
        if method != _DEFLATE:
            raise _NoHeaderError(f"gzip: method {method}, {_DEFLATE} expected")
        self._take(6)  # mtime, extra flags, operating system
        if flags & _EXTRA:
            self._take(self._little_endian(2))
        for field in (_NAME, _COMMENT):
            while flags & field and self._take(1) != b"\0":
                pass
        if flags & _HEADER_CHECKSUM:
            expected = self._header_crc & 0xFFFF
            if self._little_endian(2) != expected:
                raise _NoHeaderError("gzip: the checksum of a header does not fit")
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        self._crc = self._plain_bytes = 0

    def _little_endian(self, size: int) -> int:
        return int.from_bytes(self._take(size), "little")

    def _take(self, size: int) -> bytes:
        """Take bytes of a header or trailer: those that are buffered first."""
        taken = bytes(self._buffered[:size])
        self._buffered = self._buffered[size:]
        taken += bytes(self._stored.take(size - len(taken)))
        if len(taken) < size:
            raise _NoHeaderError("gzip: the compressed bytes end within a header or trailer")
        self._header_crc = zlib.crc32(taken, self._header_crc)
        return taken
