"""Run a query that only reads the warehouse.

First its text is judged (``decide``), then what Spark's own parser made of it: what the one reads
differently the other still judges. Both kinds of session tell that as a text, by EXPLAIN.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.engine.spark.settings import settings_meanwhile
from kafka_segments.engine.tables.views import register_views, view_names
from kafka_segments.errors import UsageError
from kafka_segments.verbs.tell.sql.decide.plan import check_plan, explain_statement
from kafka_segments.verbs.tell.sql.decide.statements import Statement, check_names

# No files by their path, no variables of the environment in the text, and "x" is a text.
_CONFINED = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
}


@dataclass(frozen=True)
class SqlOptions:
    """A query over the tables of a warehouse, an absolute URI. ``now_ms`` is the run's clock."""

    warehouse: str
    query: str
    now_ms: int


def refuse_early(options: SqlOptions) -> Statement:
    """Refuse a query by its text, before there is a session; return what was read of it.

    Raises:
        UsageError: as ``run_sql``, but for what only Spark can tell.
    """
    return check_names(options.query, view_names(options.warehouse))


def run_sql(spark: SparkSession, options: SqlOptions) -> DataFrame:
    """Register the tables that a query reads as views, and plan it over them; return its rows.

    SHOW TABLES, VIEWS, COLUMNS, FUNCTIONS and DESCRIBE are run, too, and no other statement. The
    query can use the session variable ``now_ms``.

    Raises:
        UsageError: the text is not SQL or another statement, the query calls programs or Java
            methods, or it names anything but these views, such as a file.
    """
    views = view_names(options.warehouse)
    statement = check_names(options.query, views)
    register_views(spark, options.warehouse, only=statement.reads)
    return _run(spark, statement, views, now_ms=options.now_ms)


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
    """
    with settings_meanwhile(spark, _CONFINED):
        yield


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
            raise UsageError(_one_line(error, views)) from None
    return rows


def _one_line(error: PySparkException, views: Collection[str]) -> str:
    if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
        name = (error.getMessageParameters() or {}).get("relationName")
        return f"there is no table or view {name}; there are: {', '.join(sorted(views))}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removesuffix(";")
