"""Decide once more by what Spark's own parser made of a query, as EXPLAIN EXTENDED writes it."""

import re
from collections.abc import Collection

from kafka_segments.errors import UsageError
from kafka_segments.verbs.tell.sql.functions import REACH_OUT, ROW_FUNCTIONS

_PARSED = re.compile(r"== Parsed Logical Plan ==\n(.*?)\n== Analyzed Logical Plan ==", re.DOTALL)
_RELATION = re.compile(r"UnresolvedRelation \[([^\]]*)\]")
_ROW_FUNCTION = re.compile(r"UnresolvedTableValuedFunction \[([^\]]*)\]")
_OF_ITS_OWN = re.compile(r"^\W*CTE \[([^\]]*)\]", re.MULTILINE)
_REACHES_OUT = re.compile(rf"\b({'|'.join(sorted(REACH_OUT))})\(", re.IGNORECASE)
_PROGRAM = re.compile("ScriptTransformation")


def explain_statement(query: str) -> str:
    """Return the statement that explains a query. No row is asked for, so no file is looked at."""
    return f"EXPLAIN EXTENDED SELECT * FROM ({query}) LIMIT 0"  # noqa: S608  a judged query


def check_plan(explained: str, views: Collection[str]) -> None:
    """Refuse a query that names a table which is none of ``views``, or runs a program.

    Words of the query that look like a part of a plan can only have it refused.

    Raises:
        UsageError: it does, or there is no plan to judge.
    """
    found = _PARSED.search(explained)
    if found is None:
        raise UsageError("what Spark reads here cannot be told, so it is not run; write it plainer")
    plan = found[1]
    known = {*views, *(name for own in _OF_ITS_OWN.findall(plan) for name in _names(own))}
    for relation in _RELATION.findall(plan):
        if relation.lower() not in known:
            raise UsageError(
                f"{relation} is refused: a query reads the warehouse's tables, by name"
            )
    for function in _ROW_FUNCTION.findall(plan):
        if function.lower() not in ROW_FUNCTIONS:
            raise UsageError(f"{function}(…) is refused: a query reads the warehouse's tables")
    called = [*_REACHES_OUT.findall(plan), *_PROGRAM.findall(plan)]
    if called:
        raise UsageError(
            f"{called[0].lower()} is refused: a query may not run programs or Java methods"
        )


def _names(listed: str) -> list[str]:
    return listed.lower().split(", ")
