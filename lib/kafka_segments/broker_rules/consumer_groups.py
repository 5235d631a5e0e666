"""Which partition of ``__consumer_offsets`` a group's commits are in."""

import struct


def group_partition(group: str, partitions: int) -> int:
    """Return the partition of ``__consumer_offsets`` that holds a group's commits.

    The hash is Java's ``String.hashCode``, over UTF-16 code units. Source: GroupCoordinatorService.
    """
    units = group.encode("utf-16-be", "surrogatepass")
    value = 0
    for (unit,) in struct.iter_unpack(">H", units):
        value = (31 * value + unit) & 0xFFFFFFFF
    signed = value - 2**32 if value >= 2**31 else value
    return (0 if signed == -(2**31) else abs(signed)) % partitions
