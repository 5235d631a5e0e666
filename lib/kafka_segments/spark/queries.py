"""SQL that only reads: Spark's parser and analyzer tell, not the text."""

from collections.abc import Iterator
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.errors import UsageError

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


def run_query(spark: SparkSession, text: str, *, now_ms: int) -> DataFrame:
    """Plan a query over the session's views; nothing but a query is ever run.

    The session variable ``now_ms`` is set for it. SHOW TABLES, VIEWS, COLUMNS, FUNCTIONS and
    DESCRIBE are run too.

    Raises:
        UsageError: no SQL, another statement, a query that calls programs or Java methods, or
            one that names what is not there.
    """
    text = text.strip().rstrip(";")
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    try:
        _parse(parser, text)
        spark.sql(f"DECLARE OR REPLACE VARIABLE now_ms BIGINT DEFAULT {now_ms}")
        rows = spark.sql(text)
        _refuse_code(rows)
    except (AnalysisException, ParseException) as error:
        raise UsageError(_one_line(spark, error)) from None
    return rows


def _parse(parser: Any, text: str) -> None:
    try:
        parser.parseQuery(text)
    except ParseException:
        statement = _class_name(parser.parsePlan(text))
        if statement not in _LISTINGS:
            raise UsageError(
                f"{statement} is no query: SELECT, WITH, VALUES, SHOW TABLES and DESCRIBE are run"
            ) from None


def _refuse_code(rows: DataFrame) -> None:
    plan: Any = rows._jdf.queryExecution().analyzed()
    for name in _nodes(plan):
        if name in _RUNS_CODE:
            raise UsageError(f"{name} is refused: a query may not run programs or Java methods")


def _nodes(plan: Any) -> Iterator[str]:
    """Give the class of every operator and expression of a plan, subqueries included."""
    plans: list[Any] = [plan]
    expressions: list[Any] = []
    while plans or expressions:
        if expressions:
            node = expressions.pop()
            expressions.extend(_items(node.children()))
        else:
            node = plans.pop()
            plans.extend(_items(node.children()) + _items(node.subqueries()))
            expressions.extend(_items(node.expressions()))
        yield _class_name(node)


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]


def _class_name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _one_line(spark: SparkSession, error: PySparkException) -> str:
    if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
        views = ", ".join(table.name for table in spark.catalog.listTables())
        name = (error.getMessageParameters() or {}).get("relationName")
        return f"there is no table or view {name}; there are: {views}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removesuffix(";")
