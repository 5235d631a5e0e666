"""Run a query that only reads the warehouse.

First its text is judged (``decide``), then what Spark's own parser made of it: what the one reads
differently the other still judges. Both kinds of session tell that as a text, by EXPLAIN.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.engine.derived.views import register_views, view_names
from kafka_segments.engine.spark.settings import settings_meanwhile
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import UsageError
from kafka_segments.verbs.tell.sql.decide.plan import check_plan, explain_statement
from kafka_segments.verbs.tell.sql.decide.statements import Statement, check_names

# No files by their path, no variables of the environment in the text, and "x" is a text.
_CONFINED = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
}
_OF_VALUES = ("21", "22", "P0")
"""Classes of SQLSTATE: too many rows, values that do not fit, raise_error."""
_SAID = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .*? SQLSTATE: (?P<state>\w{5})", re.DOTALL)
"""What Spark says, which stands in a Java stack where rows are streamed."""
_PLACE = re.compile(r"^== SQL \((line \d+, position \d+)\) ==$", re.MULTILINE)
_SETTING = re.compile(r' If necessary set "[^"]*" to "false" to bypass this error\.')
"""Advice of Spark's that this verb has no option for."""


@dataclass(frozen=True)
class SqlOptions:
    """A query over the tables of a warehouse. ``now_ms`` is the run's clock."""

    query: str
    now_ms: int


def refuse_early(warehouse: str, options: SqlOptions) -> Statement:
    """Refuse a query by its text, before there is a session; return what was read of it.

    ``warehouse``: an absolute URI.

    Raises:
        UsageError: as ``run_sql``, but for what only Spark can tell.
    """
    return check_names(options.query, view_names(warehouse))


def run_sql(warehouse: Warehouse, options: SqlOptions) -> DataFrame:
    """Register the tables that a query reads as views, and plan it over them; return its rows.

    SHOW TABLES, VIEWS, COLUMNS, FUNCTIONS and DESCRIBE are run, too, and no other statement. The
    query can use the session variable ``now_ms``.

    Raises:
        UsageError: the text is not SQL or another statement, the query calls programs or Java
            methods, or it names anything but these views, such as a file.
    """
    views = view_names(warehouse.root)
    statement = check_names(options.query, views)
    register_views(warehouse, only=statement.reads)
    return _run(warehouse.spark, statement, views, now_ms=options.now_ms)


def read_as_texts(spark: SparkSession, statement: Statement) -> list[str]:
    """Return the columns of a query's views that it names in double quotes, as Spark does not.

    The views have been registered by ``run_sql``.
    """
    if not statement.quoted:
        return []
    columns = {name.lower() for view in statement.reads or () for name in spark.table(view).columns}
    return sorted(name for name in statement.quoted if name.lower() in columns)


@contextmanager
def confined(spark: SparkSession) -> Iterator[None]:
    """Let the session read no file by its path meanwhile.

    Over Spark Connect a query is planned where its rows are asked for, so they must be read within.

    Raises:
        UsageError: a value does not fit what the query does with it, as in a division by zero.
    """
    with settings_meanwhile(spark, _CONFINED):
        try:
            yield
        except (PySparkException, Py4JJavaError) as error:
            told = _SAID.search(str(error))
            if told is None or not told["state"].startswith(_OF_VALUES):
                raise
            raise UsageError(_one_line(str(error), told[0])) from None


def _run(
    spark: SparkSession, statement: Statement, views: Collection[str], *, now_ms: int
) -> DataFrame:
    with confined(spark):
        try:
            spark.sql(f"DECLARE OR REPLACE VARIABLE now_ms BIGINT DEFAULT {now_ms}")
            rows = spark.sql(statement.text)
            if statement.is_query:
                check_plan(spark.sql(explain_statement(statement.text)).collect()[0][0], views)
        except (AnalysisException, ParseException) as error:
            if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
                lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                raise UsageError(lines[0].removesuffix(";")) from None
            name = (error.getMessageParameters() or {}).get("relationName")
            there = ", ".join(sorted(views))
            raise UsageError(f"there is no table or view {name}; there are: {there}") from None
    return rows


def _one_line(error: str, told: str) -> str:
    """Return what Spark says of a query, with the line and position in it where it says these."""
    place = _PLACE.search(error)
    words = " ".join(_SETTING.sub("", told).split())
    return words if place is None else f"{words}; {place[1]}"
