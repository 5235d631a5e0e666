"""Which partition of ``__consumer_offsets`` a group's commits are in."""

import math
import struct
from collections.abc import Iterable
from typing import NamedTuple

PARTITIONS = 50
"""Kafka's default of offsets.topic.num.partitions."""
_MOST_PARTITIONS = 100_000


class OffsetsRead(NamedTuple):
    """Which partitions of a coordinator's topic were read as a whole, and how many there are.

    ``of`` None: the metadata does not tell; then there are at least as many as by default.
    """

    read: frozenset[int]
    of: int | None = None

    def has(self, group: str) -> bool:
        """Tell whether the partition of a group was read."""
        return group_partition(group, self.partitions) in self.read

    @property
    def is_whole(self) -> bool:
        """Whether all partitions were read."""
        return len(self.read) >= self.partitions

    @property
    def partitions(self) -> int:
        """How many partitions there are at least."""
        return self.of or max((PARTITIONS, *(number + 1 for number in self.read)))


def unread_partition(group: str, clusters: Iterable[OffsetsRead]) -> str | None:
    """Return in words why the commits of a group may lie where nothing was read; None: nowhere."""
    for offsets in clusters:
        if offsets.has(group):
            continue
        if offsets.of is None:
            return "not known: not all partitions of __consumer_offsets were read"
        partition = group_partition(group, offsets.of)
        return (
            f"not known: its partition __consumer_offsets-{partition} was not read as a whole: give"
            " `build` or `internals` the log directory of a broker that has it"
        )
    return None


def partitions_by_groups(groups: Iterable[tuple[int, str]], *, least: int) -> int | None:
    """Return how many partitions there are by where groups lie; None: several numbers fit.

    The number divides what the hash of each group is above its partition: of few groups already
    one number alone does.

    Args:
        groups: the partition of each, and its name.
        least: how many there are at least.
    """
    common = 0
    for partition, group in groups:
        common = math.gcd(common, group_hash(group) - partition)
    if not least <= common <= _MOST_PARTITIONS:
        return None
    fit = [number for number in range(least, common + 1) if common % number == 0]
    return fit[0] if len(fit) == 1 else None


def group_hash(group: str) -> int:
    """Return the number that a group's partition is the remainder of. Source: Utils.abs."""
    units = group.encode("utf-16-be", "surrogatepass")
    value = 0
    for (unit,) in struct.iter_unpack(">H", units):
        value = (31 * value + unit) & 0xFFFFFFFF
    signed = value - 2**32 if value >= 2**31 else value
    return 0 if signed == -(2**31) else abs(signed)


def group_partition(group: str, partitions: int) -> int:
    """Return the partition of ``__consumer_offsets`` that holds a group's commits.

    The hash is Java's ``String.hashCode``, over UTF-16 code units. Source: GroupCoordinatorService.
    """
    return group_hash(group) % partitions
