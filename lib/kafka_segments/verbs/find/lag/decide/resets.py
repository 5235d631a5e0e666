"""Where a consumer goes on, and what ``auto.offset.reset`` makes of that.

Source: OffsetFetcherUtils, SubscriptionState (4.3.1): a position below the log's start or beyond
its end is out of range, as is none at all.
"""

from typing import NamedTuple


class Next(NamedTuple):
    """Where a consumer of a group goes on in a partition; None: not known.

    Attributes:
        is_reset: ``auto.offset.reset`` decides it.
        offset: Where it goes on; None: that setting decides.
        earliest: Where ``earliest`` goes on.
        latest: Where ``latest`` goes on.
        again: Offsets that ``earliest`` reads which the group had passed.
        passed_over: Offsets that ``latest`` passes over unread.
        gone: Offsets that nobody can read any more.
    """

    is_reset: bool | None
    offset: int | None = None
    earliest: int | None = None
    latest: int | None = None
    again: int | None = None
    passed_over: int | None = None
    gone: int | None = None


def next_read(current: int | None, last: int | None, start: int | None, end: int | None) -> Next:
    """Say where a consumer goes on.

    Args:
        current: the group's offset now; None: it has none.
        last: the last that it had, which may be gone; None: none is known.
        start: the log's first offset; None: not known.
        end: the one behind its last; None: not known.
    """
    if start is None or end is None:
        return Next(True if current is None else None)
    if current is not None and start <= current <= end:
        return Next(False, current, start, end, gone=0)
    if last is None:
        return Next(True, None, start, end)
    return Next(
        True,
        None,
        start,
        end,
        again=max(min(last, end) - start, 0),
        passed_over=max(end - max(last, start), 0),
        gone=max(start - last, 0),
    )


def next_in_words(found: Next) -> str:
    """Say it to a person."""
    if found.is_reset is False:
        return f"at {found.offset}"
    if found.is_reset is None:
        return "not known: the log is not at hand"
    if found.earliest is None:
        return "by auto.offset.reset; the log is not at hand"
    early = "" if not found.again else f", {found.again} read again"
    late = "" if not found.passed_over else f", {found.passed_over} passed over"
    gone = "" if not found.gone else f"; {found.gone} are gone unread"
    told = f"earliest at {found.earliest}{early}, latest at {found.latest}{late}"
    return f"by auto.offset.reset: {told}{gone}"
