"""The session in which a verb works: Spark's, what it shows of its reading, what it keeps."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from kafka_segments.console.options import ROOT
from kafka_segments.console.progress import progress
from kafka_segments.errors import BrokenTableError, KafkaSegmentsError
from kafka_segments.extras import require_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_segments.console.bar import ReadProgress
    from kafka_segments.engine.tables.delta import Warehouse


class VerbSession(NamedTuple):
    """Spark's session, the progress of what is read, and what is persisted until the verb ends.

    ``tables``: those that the verb works on; None: none.
    """

    spark: "SparkSession"
    work: "ReadProgress"
    caches: ExitStack
    tables: "Warehouse | None"

    @property
    def warehouse(self) -> "Warehouse":
        """The tables of a verb that has some."""
        assert self.tables is not None  # noqa: S101  for mypy: who asks has named them
        return self.tables


@contextmanager
def verb_session(
    verb: str,
    *,
    warehouse: str | None = None,
    reads_all: bool = False,
    questions: str | None = None,
    rewrites_all: bool = False,
    sources: Sequence[str] = (),
    follow_links: bool = False,
    has_few: bool = True,
    runs_any_query: bool = False,
) -> Iterator[VerbSession]:
    """Yield the session of a verb; nothing of Spark is imported before.

    Args:
        verb: its name, as Spark's pages show it.
        warehouse: the tables that it works on; None: none.
        reads_all: it reads whole tables, which takes minutes where they are large.
        questions: a file of as many questions as it has lines, which are answered.
        rewrites_all: it rewrites whole tables, which are few rows where all of them are small.
        sources: it reads all segments below these, which are few where they are small.
        follow_links: so it does behind the links there.
        has_few: what it reads are few rows until it meets a large table, see ``few_rows``.
        runs_any_query: its queries are a person's, see ``few_rows``.

    Raises:
        UsageError: Spark is not installed, or there can be no session, see ``spark_session``.
        SparkEndedError: Spark's JVM did not start, or it ended.
        BrokenTableError: the verb failed, and a table of the warehouse is not whole, lacks a
            column, or has one of another type.
    """
    require_extra("spark", verb)
    from kafka_segments.engine.choose import few_rows  # noqa: PLC0415
    from kafka_segments.engine.sources.source_sizes import sources_are_small  # noqa: PLC0415
    from kafka_segments.engine.spark.session import spark_session  # noqa: PLC0415
    from kafka_segments.engine.tables.delta import Warehouse  # noqa: PLC0415
    from kafka_segments.engine.tables.sizes import asks_much, holds_little, holds_much  # noqa: PLC0415
    from kafka_segments.files.delta.health import first_broken  # noqa: PLC0415

    is_long = reads_all and warehouse is not None and holds_much(warehouse)
    is_long = is_long or (questions is not None and asks_much(questions))
    if rewrites_all and warehouse is not None:
        has_few = has_few and holds_little(warehouse)
    if sources:
        has_few = has_few and sources_are_small(sources, follow_links=follow_links)
    with ExitStack() as ends:
        session = spark_session(f"kafka-segments {verb}", root=ROOT, is_long=is_long)
        spark = ends.enter_context(session)
        if has_few:
            ends.enter_context(few_rows(spark, of=warehouse, runs_any_query=runs_any_query))
        work = ends.enter_context(progress(spark))
        caches = ends.enter_context(ExitStack())
        try:
            tables = None if warehouse is None else Warehouse(spark, warehouse)
            yield VerbSession(spark, work, caches, tables)
        except KafkaSegmentsError:
            raise
        except Exception as error:
            if warehouse is None:
                raise
            broken = first_broken(warehouse, str(error))
            why = broken.text if broken else _of_columns(warehouse, str(error))
            if why is None:
                raise
            raise BrokenTableError(why) from error


def _of_columns(warehouse: str, said: str) -> str | None:
    """Return in words what the columns of tables tell of a failure; None: nothing."""
    from kafka_segments.engine.tables.lacking_columns import (  # noqa: PLC0415
        lacking_column,
        misplaced_table,
        retyped_column,
    )

    of_table = misplaced_table(warehouse)
    return of_table or lacking_column(warehouse, said) or retyped_column(warehouse)
