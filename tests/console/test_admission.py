"""The limits that forensics goes by where none are given."""

from kafka_segments.settings import Settings
from kafka_segments.verbs.find.forensics.decide import Admission


def test_limits_that_are_left_out_are_the_brokers_defaults() -> None:
    settings = Settings()

    assert Admission() == Admission(
        before_ms=settings.message_timestamp_before_max_ms,
        after_ms=settings.message_timestamp_after_max_ms,
        difference_ms=settings.message_timestamp_difference_max_ms,
    )
