"""Windows over the segments of a log, oldest first."""

from pyspark.sql import Window, WindowSpec


def whole_log(log: tuple[str, ...]) -> WindowSpec:
    """Return the window of all segments of a log."""
    return Window.partitionBy(*log).rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )


def whole_log_in_order(log: tuple[str, ...]) -> WindowSpec:
    """Return the window of all segments of a log, worked out with those of ``in_order``.

    Spark works out all windows of one sort order in one step, and needs a step for each order.
    """
    return in_order(log).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)


def older(log: tuple[str, ...]) -> WindowSpec:
    """Return the window of all segments older than a segment."""
    return in_order(log).rowsBetween(Window.unboundedPreceding, -1)


def up_to_current_row(log: tuple[str, ...]) -> WindowSpec:
    """Return the window of a segment and all older ones."""
    return in_order(log).rowsBetween(Window.unboundedPreceding, Window.currentRow)


def in_order(log: tuple[str, ...]) -> WindowSpec:
    """Return the window of a log's segments, oldest first, for lead and lag.

    Rows are sorted for it by the columns of ``log`` from the last to the first: the last ones of a
    key differ most, so that few comparisons come to the others.
    """
    return Window.partitionBy(*reversed(log)).orderBy("base_offset")
