"""What a reader asks for. The reader itself takes long to import, so this is apart from it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """Offsets and timestamps (ms) asked for, both ends included.

    A timestamp bound trusts a batch's greatest timestamp, as Kafka's own search does.
    """

    low_offset: int = -(2**63)
    high_offset: int = 2**63 - 1
    low_timestamp: int = -(2**63)
    high_timestamp: int = 2**63 - 1

    def narrowed(self, other: "Bounds") -> "Bounds":
        """Return the bounds that lie within both."""
        return Bounds(
            max(self.low_offset, other.low_offset),
            min(self.high_offset, other.high_offset),
            max(self.low_timestamp, other.low_timestamp),
            min(self.high_timestamp, other.high_timestamp),
        )
