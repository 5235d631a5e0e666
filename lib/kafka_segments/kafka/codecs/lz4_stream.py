"""A frame of lz4, as Kafka reads it.

::

    04 22 4d 18   magic
    flags         int8    version 1 in the two highest bits, blocks independent (20), with checksums
                          (10), content size (8), content checksum (4)
    blocks of     int8    4 to 7 in bits 4 to 6: 64 KiB to 4 MiB at most
    content size  int64   if the flags say so; not looked at
    checksum      int8    of the three above; in a message v0 not looked at
    then, again and again:
      block size  uint32  the highest bit: it is stored. 0: the frame ends
      block       lz4
      checksum    uint32  of the block, if the flags say so
    checksum      uint32  of the content, if the flags say so; must be there, is not looked at

1. Linked blocks and dictionaries are refused; so is any other frame, a skippable one, too.
2. The frame's end is the end: what is behind it is not looked at.
3. A block without content gives nothing once, and the stream goes on.

Integers are little-endian. Source: Lz4BlockInputStream (as of Kafka 4.3).
"""

import cramjam
import numpy as np
import xxhash

from kafka_segments.kafka.codecs.streams import DecompressionError, Piece, Stored

LZ4_FRAME_MAGIC = b"\x04\x22\x4d\x18"
LZ4_STORED = 1 << 31
_VERSION = 0x40
_INDEPENDENT, _BLOCK_CHECKSUMS, _CONTENT_SIZE, _CONTENT_CHECKSUM = 0x20, 0x10, 0x08, 0x04


class Lz4Stream:
    """Reads the blocks of a frame."""

    def __init__(self, stored: Stored, *, checks_header: bool) -> None:
        """Read the header.

        Raises:
            DecompressionError: Kafka throws.
        """
        self._stored = stored
        self._plain = memoryview(b"")
        self._is_at_end = False
        if self._take(4) != LZ4_FRAME_MAGIC:
            raise DecompressionError("lz4: no frame begins with its magic number")
        descriptor = self._take(2)
        self._flags, self._most_block_bytes = descriptor[0], _most_block_bytes(descriptor)
        if self._flags & _CONTENT_SIZE:
            descriptor += self._take(8)
        checksum = self._take(1)[0]
        if checks_header and checksum != header_checksum(descriptor):
            raise DecompressionError("lz4: the checksum of the frame's header does not fit")

    def read(self, most: int) -> Piece | None:
        """Return the next bytes of a block, none of one without content; None at the end."""
        if not self._plain and not self._is_at_end:
            self._begin_block()
        if self._is_at_end:
            return None
        piece, self._plain = self._plain[:most], self._plain[most:]
        return piece

    def has_more(self) -> bool:
        """Tell whether bytes of a block are left."""
        return bool(self._plain)

    def _begin_block(self) -> None:
        size = int.from_bytes(self._take(4), "little")
        is_stored, size = bool(size & LZ4_STORED), size & ~LZ4_STORED
        if not size:
            self._is_at_end = True
            if self._flags & _CONTENT_CHECKSUM:
                self._take(4)
            return
        if size > self._most_block_bytes:
            most = self._most_block_bytes
            raise DecompressionError(f"lz4: a block says {size} bytes, the frame at most {most}")
        block = self._take(size)
        self._plain = memoryview(block) if is_stored else _block(block, self._most_block_bytes)
        has_checksum = self._flags & _BLOCK_CHECKSUMS
        if has_checksum and int.from_bytes(self._take(4), "little") != xxhash.xxh32_intdigest(
            block
        ):
            raise DecompressionError("lz4: the checksum of a block does not fit")

    def _take(self, size: int) -> bytes:
        taken = bytes(self._stored.take(size))
        if len(taken) < size:
            raise DecompressionError("lz4: the compressed bytes end before the frame")
        return taken


def header_checksum(descriptor: bytes) -> int:
    """Return the checksum of a frame's header, from its flags on."""
    return xxhash.xxh32_intdigest(descriptor) >> 8 & 0xFF


def _most_block_bytes(descriptor: bytes) -> int:
    """Check the first two bytes of a descriptor; return how many bytes a block holds at most."""
    flags, blocks = descriptor
    if flags & 0xC3 != _VERSION or not flags & _INDEPENDENT:
        raise DecompressionError(
            f"lz4: flags {flags:#04x} are not of a frame of version 1 with independent blocks"
        )
    size = blocks >> 4 & 7
    if blocks & 0x8F or size < 4:
        raise DecompressionError(f"lz4: {blocks:#04x} is no size of blocks")
    return int(1 << 2 * size + 8)


def _block(data: bytes, most: int) -> memoryview:
    out = np.empty(most, dtype=np.uint8)
    try:
        length = int(cramjam.lz4.decompress_block_into(data, out, output_len=most))
        return memoryview(out)[:length]
    except cramjam.DecompressionError as error:
        raise DecompressionError(f"lz4: {error}") from None
