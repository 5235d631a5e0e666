"""Run a query that only reads the warehouse.

First its text is judged (``decide``), then what Spark's own parser and analyzer made of it. Two
parsers may read a text differently, so what the one lets through the other still judges.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.errors import UsageError
from kafka_segments.sql.decide import check_names
from kafka_segments.tables.views import register_views

_LISTINGS = {
    "DescribeFunction",
    "DescribeQueryCommand",
    "DescribeRelation",
    "ShowColumns",
    "ShowFunctions",
    "ShowTables",
    "ShowViews",
}
_RUNS_CODE = {"CallMethodViaReflection", "ScriptTransformation", "TryReflect"}
_READS_NOTHING = {
    "CTERelationRef",
    "CommandResult",
    "LocalRelation",
    "OneRowRelation",
    "Range",
    "UnionLoopRef",
}
# No files by their path, and no variables of the environment in the text of a query.
_CONFINED = {"spark.sql.runSQLOnFiles": "false", "spark.sql.variable.substitute": "false"}


@dataclass(frozen=True)
class SqlOptions:
    """A query over the tables of a warehouse, an absolute URI. ``now_ms`` is the run's clock."""

    warehouse: str
    query: str
    now_ms: int


def run_sql(spark: SparkSession, options: SqlOptions) -> DataFrame:
    """Register the tables of the warehouse as views, and run the query over them.

    Raises:
        UsageError: as ``run_query``.
    """
    register_views(spark, options.warehouse)
    return run_query(spark, options.query, now_ms=options.now_ms)


def run_query(spark: SparkSession, text: str, *, now_ms: int) -> DataFrame:
    """Plan a query over the session's temporary views; return its rows.

    SHOW TABLES, VIEWS, COLUMNS, FUNCTIONS and DESCRIBE are run, too, and no other statement. The
    query can use the session variable ``now_ms``.

    Raises:
        UsageError: the text is not SQL or another statement, the query calls programs or Java
            methods, or it names anything but these views, such as a file.
    """
    text = text.strip().rstrip(";")
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    with _confined(spark):
        try:
            is_query = _parse(parser, text)
            check_names(text, _views(spark))
            spark.sql(f"DECLARE OR REPLACE VARIABLE now_ms BIGINT DEFAULT {now_ms}")
            rows = spark.sql(text)
        except (AnalysisException, ParseException) as error:
            raise UsageError(_one_line(spark, error)) from None
    _check_plan(rows, is_query=is_query)
    return rows


@contextmanager
def _confined(spark: SparkSession) -> Iterator[None]:
    before = {key: spark.conf.get(key) for key in _CONFINED}
    try:
        for key, value in _CONFINED.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, kept in before.items():
            spark.conf.set(key, str(kept))


def _views(spark: SparkSession) -> set[str]:
    return {view.name.lower() for view in spark.catalog.listTables() if view.isTemporary}


def _parse(parser: Any, text: str) -> bool:
    """Return whether a text is a query; if not, it is one of the statements that list."""
    try:
        parser.parseQuery(text)
    except ParseException:
        statement = _class_name(parser.parsePlan(text))
        if statement not in _LISTINGS:
            raise UsageError(
                f"{statement} is no query: SELECT, WITH, VALUES, SHOW TABLES and DESCRIBE are run"
            ) from None
        return False
    return True


def _check_plan(rows: DataFrame, *, is_query: bool) -> None:
    plan: Any = rows._jdf.queryExecution().analyzed()
    for node, is_source in _nodes(plan):
        if node in _RUNS_CODE:
            raise UsageError(f"{node} is refused: a query may not run programs or Java methods")
        if is_query and is_source and node not in _READS_NOTHING:
            raise UsageError(f"{node} is refused: a query reads the warehouse's tables, by name")


def _nodes(plan: Any) -> Iterator[tuple[str, bool]]:
    """Yield the class of every operator and expression of a plan, and whether rows begin there.

    Subqueries are included. What lies below a temporary view is left out.
    """
    plans: list[Any] = [plan]
    expressions: list[Any] = []
    while plans or expressions:
        if expressions:
            node = expressions.pop()
            expressions.extend(_items(node.children()))
            yield _class_name(node), False
            continue
        node = plans.pop()
        if _class_name(node) == "View" and node.isTempView():
            continue
        below = _items(node.children())
        plans.extend(below + _items(node.subqueries()))
        expressions.extend(_items(node.expressions()))
        yield _class_name(node), not below


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]


def _class_name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _one_line(spark: SparkSession, error: PySparkException) -> str:
    if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
        views = ", ".join(sorted(_views(spark)))
        name = (error.getMessageParameters() or {}).get("relationName")
        return f"there is no table or view {name}; there are: {views}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removesuffix(";")
