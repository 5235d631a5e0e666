"""What a verb says of the tables that its answer is taken from: their age, and what they lack."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafka_segments.console.lines import say
from kafka_segments.console.not_known import tell_not_known
from kafka_segments.console.output import duration, utc
from kafka_segments.console.prometheus import give_tables_age
from kafka_segments.errors import KafkaSegmentsError

if TYPE_CHECKING:
    from pyspark.sql import Row

    from kafka_segments.engine.derived.as_built import AsBuilt
    from kafka_segments.engine.tables.delta import Warehouse

_MOST_ALTERED = 3
_NO_BUILD = "how old the tables are is not known: they tell of no build"


def tell_as_built(
    warehouse: "Warehouse",
    *,
    now_ms: int,
    topics: Sequence[str] = (),
    partition: int | None = None,
    has_starts: bool = True,
) -> None:
    """Say on stderr which builds made the tables, and what makes answers from them doubtful.

    That is where logs lack their end, and where it is not known where they begin or end.
    ``topics``, ``partition``: the logs that are asked about, as for ``read_as_built``.
    ``has_starts``: the answer depends on where logs begin, too.
    """
    from kafka_segments.engine.derived.as_built import read_as_built  # noqa: PLC0415

    with _not_known_where_broken():
        found = read_as_built(warehouse, topics, partition, has_starts=has_starts)
        say_builds(found.builds_ms, now_ms=now_ms)
        tell_not_known(_lines_as_built(found))


def not_known_as_built(warehouse: "Warehouse") -> list[str]:
    """Return what makes answers from all tables doubtful, in the words of ``tell_as_built``."""
    from kafka_segments.engine.derived.as_built import read_as_built  # noqa: PLC0415

    try:
        found = read_as_built(warehouse)
    except KafkaSegmentsError as error:
        return [_unread_tables(error)]
    return [*(() if found.builds_ms else (_NO_BUILD,)), *_lines_as_built(found)]


def _lines_as_built(found: "AsBuilt") -> Iterator[str]:
    yield from altered_lines(found.altered)
    if found.cut_examples:
        yield cut_logs_line(found.cut_examples)
    yield from unread_notes_lines(found.unread_examples)


def tell_age(
    warehouse: "Warehouse",
    *,
    now_ms: int | None,
    allowed: Mapping[str, Sequence[str | int]] | None = None,
    at_ms: int | None = None,
) -> None:
    """Say on stderr which builds made the tables, for an answer about the moment ``now_ms``.

    Where logs begin and end may not be known, either. ``now_ms`` None: their age was told already.
    ``allowed``: of the logs that are asked about, the values of columns of their key. ``at_ms``:
    the answer is of this moment: of tables that were built since the age does not count.
    """
    from kafka_segments.engine.derived.as_built import read_age  # noqa: PLC0415

    with _not_known_where_broken():
        found = read_age(warehouse, allowed or {})
        moment_ms = now_ms if at_ms is None else at_ms
        is_past = at_ms is not None and bool(found.builds_ms) and at_ms <= min(found.builds_ms)
        if moment_ms is None or is_past:
            tell_not_known(_lines_as_built(found))
            return
        say_builds(found.builds_ms, now_ms=moment_ms)
        tell_not_known(_lines_as_built(found))


def tell_builds(warehouse: "Warehouse", *, now_ms: int) -> None:
    """Say on stderr which builds made the tables, for an answer that does not go by notes.

    It tells what the tables hold, or says itself which logs' bounds are not known.
    """
    from kafka_segments.engine.derived.as_built import read_builds  # noqa: PLC0415

    with _not_known_where_broken():
        found = read_builds(warehouse)
        say_builds(found.builds_ms, now_ms=now_ms)
        tell_not_known(_lines_as_built(found))


def tell_records(
    warehouse: "Warehouse", topic: str, *, now_ms: int, cluster: str | None = None
) -> None:
    """Say on stderr up to when records of an internal topic were read, for an answer from these.

    ``now_ms``: the moment that the answer is of. Where all were read beyond it, nothing is said.
    ``cluster``: the one that is asked about; None: all are.
    """
    from kafka_segments.engine.derived.internal_files import newest_records_ms  # noqa: PLC0415

    with _not_known_where_broken():
        newest_ms = newest_records_ms(warehouse, topic, cluster)
        if newest_ms and min(newest_ms) < now_ms:
            end = f"records of {topic} were read up to {utc(min(newest_ms))} UTC"
            say(f"{end}, {_before(min(newest_ms), now_ms)}")


def say_builds(builds_ms: Sequence[int], *, now_ms: int) -> None:
    """Say on stderr which builds made the tables; ``builds_ms``: see ``AsBuilt``."""
    give_tables_age(now_ms - min(builds_ms) if builds_ms else None)
    if builds_ms:
        say(_age(min(builds_ms), max(builds_ms), now_ms))
    else:
        tell_not_known((_NO_BUILD,))


@contextmanager
def _not_known_where_broken() -> Iterator[None]:
    """Say that the age is not known, and why, where a table cannot be read."""
    try:
        yield
    except KafkaSegmentsError as error:
        give_tables_age(None)
        tell_not_known([_unread_tables(error)])


def _unread_tables(error: KafkaSegmentsError) -> str:
    return f"how old the tables are, and what they lack, is not known: {error}"


def _age(oldest_ms: int, newest_ms: int, now_ms: int) -> str:
    when = _before(oldest_ms, now_ms) if now_ms >= oldest_ms else "after the moment asked for"
    if newest_ms == oldest_ms:
        return f"the tables are of the build of {utc(oldest_ms)} UTC, {when}"
    return (
        f"the tables are of builds of {utc(oldest_ms)} to {utc(newest_ms)} UTC, the oldest {when}"
    )


def _before(told_ms: int, now_ms: int) -> str:
    return f"{duration(now_ms - told_ms)} before: what changed since does not count"


def altered_lines(altered: Sequence[str]) -> Iterator[str]:
    """Yield in words what tables lack since somebody altered them; ``altered``: see ``AsBuilt``."""
    for why in altered[:_MOST_ALTERED]:
        yield (
            f"{why.rstrip('.')}. What answers lack by that is not known: `kafka-segments build` of"
            " each source makes the tables whole"
        )
    if len(altered) > _MOST_ALTERED:
        yield f"{len(altered) - _MOST_ALTERED} more such changes of the tables"


def unread_notes_lines(examples: "Sequence[Row]") -> Iterator[str]:
    """Yield in words which directories' notes were not read; ``examples``: of ``unread_notes``."""
    for row in examples:
        yield (
            f"{row['log_dir']}: what its broker notes there, by which answers go, is not known:"
            f" {row['problem']}"
        )
    if examples and examples[0]["dirs"] > len(examples):
        yield f"so it is in {examples[0]['dirs'] - len(examples)} more log directories"


def cut_logs_line(examples: "Sequence[Row]") -> str:
    """Return in words which logs lack their end; ``examples``: rows of ``cut_logs``, some."""
    count = examples[0]["logs"]
    logs = "1 log lacks its end" if count == 1 else f"{count} logs lack their end"
    named = [
        f"{row['topic']}-{row['partition']} in {row['log_dir']}: {row['cut_short']}"
        for row in examples
    ]
    if count > len(named):
        named.append("…")
    return f"{logs}. {'. '.join(named)}"
