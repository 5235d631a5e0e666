"""Moments that a person gave; a number that counts as ms but looks like another unit is said."""

from kafka_segments.console.lines import say
from kafka_segments.kafka.text.moments import likely_unit, moment_text, parse_moment, parse_point


def given_moment(option: str, text: str, *, now_ms: int) -> int:
    """Return a moment as ``parse_moment``; say where a number looks like another unit than ms.

    Raises:
        UsageError: see ``parse_moment``.
    """
    moment_ms = parse_moment(text, now_ms=now_ms)
    _tell_unit(option, text)
    return moment_ms


def given_point(option: str, text: str, *, now_ms: int) -> int:
    """Return a moment as ``parse_point``; say where a number looks like another unit than ms.

    Raises:
        UsageError: see ``parse_point``.
    """
    moment_ms = parse_point(option, text, now_ms=now_ms)
    _tell_unit(option, text)
    return moment_ms


def _tell_unit(option: str, text: str) -> None:
    likely = likely_unit(text)
    if likely is not None:
        unit, meant_ms = likely
        say(
            f"{option} {text} is taken as ms, {moment_text(int(text))}; were it {unit}, it would be"
            f" {moment_text(meant_ms)}: {option} {meant_ms}"
        )
