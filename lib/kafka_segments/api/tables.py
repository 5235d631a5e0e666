"""The tables of a warehouse as DataFrames, in a session that runs already or is started."""

import warnings
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.api.arguments import Moment, clock_or
from kafka_segments.console.as_built import not_known_as_built
from kafka_segments.console.options import ROOT
from kafka_segments.engine.derived.views import HISTORY, table_names, view_names, view_of
from kafka_segments.engine.rows.workers import take_own_python
from kafka_segments.engine.spark.session import spark_session
from kafka_segments.engine.spark.site_settings import standing_against
from kafka_segments.engine.tables.catalog import SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import UsageError
from kafka_segments.verbs.tell.sql.run import SqlOptions, run_sql


class OpenTables:
    """The tables of a warehouse, and queries over them."""

    def __init__(self, uri: str, spark: SparkSession | None) -> None:
        self.uri = uri
        self._told: dict[str, None] = {}
        self._kept = ExitStack()
        self.spark = spark or self._kept.enter_context(
            spark_session("kafka_segments", root=ROOT, is_long=True)
        )
        take_own_python(self.spark)
        self._tables = Warehouse(self.spark, uri)
        self._require_delta()
        self._warn_of_settings()

    def __repr__(self) -> str:
        return f"<kafka_segments: {self.uri}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kept.__exit__(kind, error, trace)

    def close(self) -> None:
        """Give up what is kept in memory, and stop a session that ``open`` started."""
        self._kept.close()

    @property
    def _warehouse(self) -> Warehouse:
        """The tables, each looked for anew: between two answers one may go away or break."""
        return Warehouse(self.spark, self.uri)

    def _require_delta(self) -> None:
        """Refuse a session that was started without Delta."""
        try:
            for name in self.tables[:1]:
                view_of(self._tables, name)
        except AnalysisException as error:
            if error.getCondition() != "DATA_SOURCE_NOT_FOUND":
                raise
            raise UsageError(
                "the Spark session that is running has no Delta: stop it, and `open` starts one"
                " that has, or start it with Delta's JARs, see docs/api.md"
            ) from None

    def _warn_of_settings(self) -> None:
        """Name what the session of a user's own sets otherwise than our queries mean."""
        found = standing_against(self.spark.conf.getAll)
        if found:
            warnings.warn(
                f"in this session {', '.join(found)}: answers may differ from those of the command"
                " line, or fail; see docs/clusters.md",
                stacklevel=4,
            )

    def not_known(self) -> list[str]:
        """Say what the answers since ``open`` did not know, and what all answers may lack.

        The lines are those that the command line has on stderr, where they make the exit status 1,
        each once: first what each answer told when it was asked for, then of the tables as they
        are now which logs lack their end, which log directories' notes were not read, and what
        cannot be read. Where an answer has rows that say of themselves that something is not known,
        these do. None: nothing is not known.
        """
        return [*self._told, *not_known_as_built(self._warehouse)]

    @property
    def tables(self) -> list[str]:
        """The names of the tables that are there, sorted."""
        return table_names(self.uri)

    def table(self, name: str) -> DataFrame:
        """Return the published rows of a table by its name.

        Columns of ms since 1970 have a TIMESTAMP column beside them, as in `kafka-segments sql`;
        its views are tables here, too. Rows of quarantined segments are left out. ``segments``
        leaves out vanished segments, which ``segments_history`` has.

        Raises:
            UsageError: there is no such table.
        """
        if name not in view_names(self.uri):
            raise UsageError(f"{self.uri} has no table {name}; it has {', '.join(self.tables)}")
        return view_of(self._tables, name)

    @property
    def segments(self) -> DataFrame:
        """A row for each segment that the last listing found."""
        return self.table(SEGMENTS.name)

    @property
    def segments_history(self) -> DataFrame:
        """The same with the segments that have vanished since; ``vanished_at`` says when."""
        return self.table(HISTORY)

    @property
    def offset_index(self) -> DataFrame:
        """A row for each entry of an offset index, of vanished segments too."""
        return self.table("offset_index")

    @property
    def time_index(self) -> DataFrame:
        """A row for each entry of a time index, of vanished segments too."""
        return self.table("time_index")

    @property
    def logs(self) -> DataFrame:
        """A row for each partition on a broker."""
        return self.table("logs")

    @property
    def log_dirs(self) -> DataFrame:
        """A row for each log directory."""
        return self.table("log_dirs")

    @property
    def unrecognized_files(self) -> DataFrame:
        """A row for each file or folder that is in no other table."""
        return self.table("unrecognized_files")

    @property
    def runs(self) -> DataFrame:
        """A row for each run of a build."""
        return self.table("runs")

    def sql(self, query: str, *, now: Moment | None = None) -> DataFrame:
        """Run one query over the tables, by their names; ``now_ms`` in it is ``now``.

        The session gets a temporary view of every table.

        Raises:
            UsageError: the text is no query, or names anything but these tables.
        """
        return run_sql(self._warehouse, SqlOptions(query, clock_or(now)))
