"""Compressed bytes in every framing that Kafka may meet: sound ones, odd ones, and drawn ones.

Blocks hold literals alone, so that the bytes are the same with any library. Nothing comes from
``kafka_segments``.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterable
from itertools import pairwise

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
XERIAL = b"\x82SNAPPY\0"
SKIPPABLE = struct.pack("<II", 0x184D2A50, 4) + b"skip"
_MASK = 0xFFFFFFFF
_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_STORED = 1 << 31


def _turned(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK


def plain_xxh32(data: bytes) -> int:
    """Compute XXH32 by its definition."""
    one, two, three, four, five = _PRIMES
    at, value = 0, five
    if len(data) >= 16:
        lanes = [one + two, two, 0, -one]
        while at + 16 <= len(data):
            for lane, word in enumerate(struct.unpack_from("<4I", data, at)):
                lanes[lane] = _turned(lanes[lane] + word * two, 13) * one & _MASK
            at += 16
        value = sum(_turned(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    value += len(data)
    while at + 4 <= len(data):
        value = _turned(value + struct.unpack_from("<I", data, at)[0] * three, 17) * four & _MASK
        at += 4
    for byte in data[at:]:
        value = _turned(value + byte * five, 11) * one & _MASK
    value &= _MASK
    value = (value ^ value >> 15) * two & _MASK
    value = (value ^ value >> 13) * three & _MASK
    return value ^ value >> 16


def gzip_member(
    data: bytes,
    *,
    flags: int = 0,
    head: bytes = b"\x1f\x8b\x08",
    wrong_header: int = 0,
    wrong_crc: int = 0,
    wrong_size: int = 0,
) -> bytes:
    """Write a member; the ``wrong`` numbers are added to what is right."""
    header = head + bytes([flags]) + b"\1\2\3\4\0\3"
    header += b"\3\0abc" if flags & 4 else b""
    header += b"name\0" if flags & 8 else b""
    header += b"words\0" if flags & 16 else b""
    if flags & 2:
        header += struct.pack("<H", (zlib.crc32(header) + wrong_header) & 0xFFFF)
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    body = deflate.compress(data) + deflate.flush()
    sizes = (zlib.crc32(data) + wrong_crc & _MASK, len(data) + wrong_size & _MASK)
    return header + body + struct.pack("<II", *sizes)


def snappy_block(data: bytes) -> bytes:
    """Write a block of literals."""
    left, length = len(data), b""
    while left > 0x7F:
        length += bytes([left & 0x7F | 0x80])
        left >>= 7
    parts = [data[at : at + 60] for at in range(0, len(data), 60)]
    literals = b"".join(bytes([len(part) - 1 << 2]) + part for part in parts)
    return length + bytes([left]) + literals


def snappy_stream(blocks: Iterable[bytes], *, version: int = 1, compatible: int = 1) -> bytes:
    """Write the framing of snappy-java around blocks as they are."""
    header = XERIAL + struct.pack(">ii", version, compatible)
    return header + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def lz4_block(data: bytes) -> bytes:
    """Write a block of literals."""
    if len(data) < 15:
        return bytes([len(data) << 4]) + data
    more, last = divmod(len(data) - 15, 255)
    return b"\xf0" + b"\xff" * more + bytes([last]) + data


def lz4_frame(
    blocks: Iterable[tuple[bool, bytes]],
    *,
    flags: int = 0x60,
    sizes: int = 0x40,
    content_size: int = 0,
    magic: bytes = b"\x04\x22\x4d\x18",
    wrong_header: int = 0,
    wrong_block: int = 0,
    is_ended: bool = True,
) -> bytes:
    """Write a frame of blocks, each stored or not; what the flags say is there."""
    descriptor = bytes([flags, sizes]) + (struct.pack("<Q", content_size) if flags & 8 else b"")
    descriptor += bytes(4) if flags & 1 else b""  # a dictionary's id
    frame = magic + descriptor
    frame += bytes([(plain_xxh32(descriptor) >> 8) + wrong_header & 0xFF])
    for is_stored, data in blocks:
        block = data if is_stored else lz4_block(data)
        frame += struct.pack("<I", len(block) | (_STORED if is_stored else 0)) + block
        if flags & 0x10:
            frame += struct.pack("<I", plain_xxh32(block) + wrong_block & _MASK)
    frame += bytes(4) if is_ended else b""
    return frame + (b"\1\2\3\4" if flags & 4 and is_ended else b"")


def zstd_frame(
    data: bytes, *, window: int | None = None, reserved: int = 0, size: int = 0
) -> bytes:
    """Write a frame of one block that is not compressed; ``size`` is added to what it says."""
    block = struct.pack("<I", len(data) << 3 | 1)[:3] + data
    if window is not None:
        return b"\x28\xb5\x2f\xfd" + bytes([reserved << 3, window]) + block
    return (
        b"\x28\xb5\x2f\xfd"
        + bytes([0xA0 | reserved << 3])
        + struct.pack("<I", len(data) + size)
        + block
    )


def framings(data: bytes) -> dict[str, tuple[int, bytes]]:
    """Give a codec and bytes for every framing that is told apart somewhere, by name."""
    tables = ((GZIP, _gzip(data)), (SNAPPY, _snappy(data)), (LZ4, _lz4(data)), (ZSTD, _zstd(data)))
    return {name: (codec, made) for codec, table in tables for name, made in table.items()}


def _gzip(data: bytes) -> dict[str, bytes]:
    member, half = gzip_member(data), len(data) // 2
    flags = {
        f"gzip flags {flags:#x}": gzip_member(data, flags=flags)
        for flags in (1, 2, 4, 8, 16, 31, 0x20, 0x40, 0x80, 0xE0, 0x22)
    }
    tails = {
        f"gzip tail {size}": member + b"tail of a member, longer than all"[:size]
        for size in (1, 2, 8, 17, 18, 19, 30)
    }
    zeros = {f"gzip zeros {size}": member + bytes(size) for size in (1, 18, 19, 64)}
    cuts = {f"gzip cut {size}": member[:-size] for size in (1, 4, 8, 9, 20)}
    return (
        flags
        | tails
        | zeros
        | cuts
        | {
            "gzip": member,
            "gzip nothing": b"",
            "gzip header alone": member[:10],
            "gzip header sum wrong": gzip_member(data, flags=2, wrong_header=1),
            "gzip method 7": gzip_member(data, head=b"\x1f\x8b\x07"),
            "gzip magic wrong": gzip_member(data, head=b"\x1f\x8c\x08"),
            "gzip zlib": zlib.compress(data),
            "gzip crc wrong": gzip_member(data, wrong_crc=1),
            "gzip size wrong": gzip_member(data, wrong_size=1),
            "gzip magic behind": member + b"\x1f\x8b",
            "gzip magic and more behind": member + b"\x1f\x8b\x08" + bytes(17),
            "gzip header behind": member + member[:10],
            "gzip two members": gzip_member(data[:half]) + gzip_member(data[half:]),
            "gzip second reserved": gzip_member(data[:half]) + gzip_member(data[half:], flags=0x40),
            "gzip second method 7": gzip_member(data) + gzip_member(data, head=b"\x1f\x8b\x07"),
            "gzip empty first": gzip_member(b"") + member,
            "gzip empty last": member + gzip_member(b""),
            "gzip second crc wrong": member + gzip_member(bytes(40), wrong_crc=1),
            "gzip second cut": member + gzip_member(bytes(60))[:-5],
        }
    )


def _snappy(data: bytes) -> dict[str, bytes]:
    whole, third = snappy_block(data), len(data) // 3
    first, last, empty = snappy_block(data[:third]), snappy_block(data[third:]), snappy_block(b"")
    stream = snappy_stream([whole])
    tails = {
        f"snappy tail {size}": stream + b"\x01tail bytes"[:size] for size in (1, 2, 3, 4, 5, 7)
    }
    zeros = {f"snappy zeros {size}": stream + bytes(size) for size in (1, 3, 4, 5, 8)}
    versions = {
        f"snappy version {one} {other}": snappy_stream([whole], version=one, compatible=other)
        for one, other in ((0, 1), (2, 1), (-1, 1), (1, 0), (1, 2), (1, 2**31 - 1))
    }
    return (
        tails
        | zeros
        | versions
        | {
            "snappy": stream,
            "snappy bare": whole,
            "snappy bare and more": whole + b"\0",
            "snappy bare empty": empty,
            "snappy nothing": b"",
            "snappy length 0 first": snappy_stream([b"", whole]),
            "snappy length 0 between": snappy_stream([first, b"", last]),
            "snappy length 0 last": snappy_stream([whole, b""]),
            "snappy length 0 alone": snappy_stream([b""]),
            "snappy empty first": snappy_stream([empty, whole]),
            "snappy empty between": snappy_stream([first, empty, empty, last]),
            "snappy empty last": snappy_stream([whole, empty]),
            "snappy cut 1": stream[:-1],
            "snappy last block cut": snappy_stream([first, last])[:-3],
            "snappy header alone": snappy_stream([]),
            "snappy header cut": snappy_stream([])[:12],
            "snappy magic wrong": b"\x82SNAPPY\1" + stream[8:],
            "snappy two streams": snappy_stream([first]) + snappy_stream([last]),
            "snappy second version 0": snappy_stream([first]) + snappy_stream([last], version=0),
            "snappy header last": stream + snappy_stream([]),
            "snappy header cut last": stream + snappy_stream([])[:11],
            "snappy header twice": snappy_stream([]) + stream,
            "snappy second magic wrong": snappy_stream([first])
            + b"\x82SNAPPX\0"
            + snappy_stream([last])[8:],
            "snappy length negative": snappy_stream([]) + b"\xff\xff\xff\xff" + whole,
            "snappy length too great": snappy_stream([])
            + struct.pack(">i", len(whole) + 1)
            + whole,
            "snappy length huge": snappy_stream([]) + b"\x7f\xff\xff\xff" + whole,
            "snappy garbage last": snappy_stream([whole, b"\xff" * 9]),
        }
    )


def _lz4(data: bytes) -> dict[str, bytes]:
    third, most = len(data) // 3, 65536
    whole, first, last = (False, data), (False, data[:third]), (False, data[third:])
    stored, nothing, none = (True, data), (False, b""), (True, b"")
    frame = lz4_frame([whole])
    flags = {
        f"lz4 flags {flags:#x}": lz4_frame([whole], flags=flags, content_size=len(data))
        for flags in (0x20, 0x40, 0x61, 0x62, 0x64, 0x68, 0x70, 0x7C, 0xA0, 0xE0)
    }
    sizes = {
        f"lz4 sizes {sizes:#x}": lz4_frame([whole], sizes=sizes)
        for sizes in (0, 0x30, 0x41, 0x50, 0x70, 0xC0)
    }
    contents = {
        f"lz4 content size {size}": lz4_frame([whole], flags=0x68, content_size=size)
        for size in (0, len(data) - 1, len(data) + 1, 2**64 - 1)
    }
    tails = {f"lz4 tail {size}": frame + b"\1tail of a frame"[:size] for size in (1, 3, 4, 7, 15)}
    return (
        flags
        | sizes
        | contents
        | tails
        | {
            "lz4": frame,
            "lz4 stored": lz4_frame([stored]),
            "lz4 blocks": lz4_frame([first, (True, data[third:])]),
            "lz4 linked stored": lz4_frame([stored], flags=0x40),
            "lz4 header sum wrong": lz4_frame([whole], wrong_header=1),
            "lz4 block sum wrong": lz4_frame([whole], flags=0x70, wrong_block=1),
            "lz4 stored sum wrong": lz4_frame([stored], flags=0x70, wrong_block=1),
            "lz4 content sum missing": lz4_frame([whole], flags=0x64)[:-4],
            "lz4 content sum cut": lz4_frame([whole], flags=0x64)[:-1],
            "lz4 empty stored first": lz4_frame([none, whole]),
            "lz4 empty stored between": lz4_frame([first, none, last]),
            "lz4 empty stored last": lz4_frame([whole, none]),
            "lz4 empty first": lz4_frame([nothing, whole]),
            "lz4 empty between": lz4_frame([first, nothing, last]),
            "lz4 empty last": lz4_frame([whole, nothing]),
            "lz4 empty last and more": lz4_frame([whole, nothing, whole]),
            "lz4 no blocks": lz4_frame([]),
            "lz4 end missing": lz4_frame([whole], is_ended=False),
            "lz4 end cut": frame[:-1],
            "lz4 end early": lz4_frame([first]) + struct.pack("<I", 9) + bytes(9),
            "lz4 two frames": lz4_frame([first]) + lz4_frame([last]),
            "lz4 empty frame first": lz4_frame([]) + frame,
            "lz4 empty frame last": frame + lz4_frame([]),
            "lz4 skippable first": SKIPPABLE + frame,
            "lz4 skippable last": frame + SKIPPABLE,
            "lz4 magic wrong": lz4_frame([whole], magic=b"\x05\x22\x4d\x18"),
            "lz4 nothing": b"",
            "lz4 header alone": lz4_frame([], is_ended=False),
            "lz4 header cut": frame[:6],
            "lz4 block cut": lz4_frame([whole], is_ended=False)[:-5],
            "lz4 block too long": lz4_frame([(True, data + bytes(most))]),
            "lz4 second block too long": lz4_frame([whole, (True, bytes(most + 1))]),
        }
    )


def _zstd(data: bytes) -> dict[str, bytes]:
    frame = zstd_frame(data)
    tails = {f"zstd tail {size}": frame + b"\1tail bytes"[:size] for size in (1, 3, 4, 9)}
    return tails | {
        "zstd": frame,
        "zstd window": zstd_frame(data, window=0x58),
        "zstd window of 1 GiB": zstd_frame(data, window=0xA0),
        "zstd reserved bit": zstd_frame(data, reserved=1),
        "zstd size more": zstd_frame(data, size=1),
        "zstd skippable first": SKIPPABLE + frame,
        "zstd skippable last": frame + SKIPPABLE,
        "zstd two frames": zstd_frame(data[:8]) + zstd_frame(data[8:]),
        "zstd empty frame first": zstd_frame(b"") + frame,
        "zstd empty frame last": frame + zstd_frame(b""),
        "zstd nothing": b"",
        "zstd cut": frame[:-1],
        "zstd magic wrong": b"\x27" + frame[1:],
    }


def drawn_framing(rng: random.Random, data: bytes) -> tuple[int, bytes]:
    """Draw a codec, blocks wherever they end, what a framing allows and a little more."""
    codec = rng.choice([GZIP, SNAPPY, LZ4])
    parts = _parts(rng, data)
    if codec == GZIP:
        made = b"".join(
            gzip_member(
                part, flags=rng.choice([0, 0, 2, 8, 31, 0x40]), wrong_crc=rng.random() < 0.02
            )
            for part in parts
        )
    elif codec == SNAPPY:
        cut = rng.randint(0, len(parts))
        blocks = [snappy_block(part) if part or rng.random() < 0.8 else b"" for part in parts]
        made = snappy_stream(blocks[:cut])
        if cut < len(parts):
            made += snappy_stream(blocks[cut:], version=rng.choice([1, 1, 1, 0]))
    else:
        blocks = [(rng.random() < 0.5, part) for part in parts]
        blocks = [(is_stored and bool(part), part) for is_stored, part in blocks]
        made = lz4_frame(blocks, flags=0x60 | rng.choice([0, 0, 4, 8, 0x10, 0x1C]))
    made = made[: len(made) - rng.choice([0] * 12 + [1, 4, 9])]
    return codec, made + rng.choice([b""] * 6 + [b"\0", bytes(3), bytes(20), rng.randbytes(30)])


def _parts(rng: random.Random, data: bytes) -> list[bytes]:
    cuts = sorted(rng.randint(0, len(data)) for _ in range(rng.choice([0, 0, 1, 1, 2, 5])))
    if rng.random() < 0.3:
        cuts = sorted([*cuts, rng.choice([0, len(data), *cuts])])
    ends = [0, *cuts, len(data)]
    return [data[start:end] for start, end in pairwise(ends)]
