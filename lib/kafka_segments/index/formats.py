"""The index formats that a build can write, and their variants."""

from dataclasses import dataclass
from enum import StrEnum

from kafka_segments.errors import UsageError
from kafka_segments.index.every_n_index import EveryNRule
from kafka_segments.index.kip33_index import WithoutTimestamps
from kafka_segments.index.minute_index import MinuteVariant


class IndexFormat(StrEnum):
    """What is written beside a segment.

    ``KAFKA``: ``.index`` and ``.timeindex`` as recovery writes them. The others put another file
    in place of one of the two: ``KIP33`` another ``.timeindex``, ``MINUTE`` a ``.time.index`` for
    the ``.timeindex``, ``EVERY_N`` another ``.index``.
    """

    KAFKA = "kafka"
    KIP33 = "kip33"
    MINUTE = "minute"
    EVERY_N = "every-n"


@dataclass(frozen=True)
class FormatOptions:
    """A format and what its variants are; those of other formats are ignored.

    Raises:
        UsageError: ``every_n`` is below 1.
    """

    name: IndexFormat = IndexFormat.KAFKA
    without_timestamps: WithoutTimestamps = WithoutTimestamps.EMPTY
    minute_variant: MinuteVariant = MinuteVariant.MAP
    every_n: int = 100
    every_n_rule: EveryNRule = EveryNRule.BY_OFFSET

    def __post_init__(self) -> None:
        if self.every_n < 1:
            raise UsageError(f"--every-n is {self.every_n}, the least is 1")

    def __str__(self) -> str:
        """Name the format with its variant, as ``every-n:100:by-offset``."""
        variants = {
            IndexFormat.KIP33: f":{self.without_timestamps}",
            IndexFormat.MINUTE: f":{self.minute_variant}",
            IndexFormat.EVERY_N: f":{self.every_n}:{self.every_n_rule}",
        }
        return self.name + variants.get(self.name, "")
