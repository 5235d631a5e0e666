"""The rules of retention, release by release."""

from dataclasses import dataclass
from typing import Self

from kafka_segments.kafka.broker_rules.versions import parse_version

LOG_START_OFFSET, SIZE, TIME = "log_start_offset", "retention_bytes", "retention_ms"


@dataclass(frozen=True)
class RetentionRules:
    """The rules of one release.

    Attributes:
        passes: the passes, in their order.
        heeds_high_watermark: a segment that reaches above the high watermark stays.
        needs_high_watermark: nothing goes while the high watermark is not known.
        by_mtime: the mtime of the file is its time, whatever the records say.
        negative_is_unlimited: a negative retention.ms is no limit; if not, all is past it.
        starts_without_delete: the pass by log start offset runs whatever the cleanup.policy is.
        is_tiered: the release has remote storage.
        empty_policy_is_tiered: on a tiered topic an empty cleanup.policy runs all passes.

    Source: Log.deleteOldSegments of the releases, UnifiedLog.deleteOldSegments (4.3.1).
    """

    passes: tuple[str, ...]
    heeds_high_watermark: bool
    needs_high_watermark: bool
    by_mtime: bool
    negative_is_unlimited: bool
    starts_without_delete: bool
    is_tiered: bool
    empty_policy_is_tiered: bool

    @classmethod
    def of(cls, version: str) -> Self:
        """Return the rules of a release such as 4.3, 3.9.1 or 0.10.2.

        Raises:
            UsageError: no version, or one before 0.8.
        """
        release = parse_version(version)
        passes: tuple[str, ...] = (LOG_START_OFFSET, SIZE, TIME)
        if release < (3, 0):
            passes = (TIME, SIZE, LOG_START_OFFSET) if release >= (0, 11) else (TIME, SIZE)
        return cls(
            passes=passes,
            heeds_high_watermark=release >= (1, 0),
            needs_high_watermark=(1, 0) <= release < (2, 4),
            by_mtime=release < (0, 10, 1),
            negative_is_unlimited=release >= (0, 9),
            starts_without_delete=release >= (2, 1),
            is_tiered=release >= (3, 6),
            empty_policy_is_tiered=release >= (4, 2),
        )
