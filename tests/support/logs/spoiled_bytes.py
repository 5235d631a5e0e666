"""Bytes of sound files and messages, spoiled at random."""

import random
import struct

EXTREMES = (0, 1, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 61, 62)


def spoil(choice: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Change one to four things: bits, bytes, whole numbers, stretches."""
    spoiled = bytearray(data)
    for _ in range(choice.randint(1, 4)):
        at = choice.randrange(len(spoiled) + 1)
        kind = choice.randrange(6)
        if kind == 0 and at < len(spoiled):
            spoiled[at] ^= 1 << choice.randrange(8)
        elif kind == 1:
            width, form = choice.choice([(8, ">q"), (4, ">i"), (2, ">h")])
            most = 1 << (8 * width)
            value = (choice.choice(EXTREMES) + most // 2) % most - most // 2
            spoiled[at : at + width] = struct.pack(form, value)
        elif kind == 2:
            del spoiled[at : at + choice.randint(1, 200)]
        elif kind == 3:
            spoiled[at:at] = choice.randbytes(choice.randint(1, 40))
        elif kind == 4:
            other = choice.choice(others)
            start = choice.randrange(len(other) + 1)
            spoiled[at:at] = other[start : start + choice.randint(1, 300)]
        else:
            spoiled[at:] = bytes(len(spoiled[at:]))
    return bytes(spoiled)
