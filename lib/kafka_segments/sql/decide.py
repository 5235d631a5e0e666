"""Decide whether a statement names tables and views of the warehouse alone, from its text."""

from collections.abc import Collection, Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.scope import traverse_scope

from kafka_segments.errors import UsageError

_DIALECT = "databricks"
# Functions that make rows of their arguments. All others read tables, or files by path.
_TABLE_FUNCTIONS = {
    *("collations", "explode", "explode_outer", "inline", "inline_outer", "json_tuple"),
    *("posexplode", "posexplode_outer", "range", "sql_keywords", "stack"),
    *("variant_explode", "variant_explode_outer"),
}
# Functions that call Java methods, or take the path of a schema among their options.
_REACH_OUT = {
    *("java_method", "reflect", "try_reflect"),
    *("from_avro", "to_avro", "schema_of_avro", "from_protobuf", "to_protobuf"),
    *("from_xml", "schema_of_xml"),
}
_DESCRIBES = {"DESC", "DESCRIBE"}
_OF_A_TABLE = {"TABLE", "EXTENDED", "FORMATTED"}
_BEGINS_A_QUERY = {"(", "FROM", "SELECT", "VALUES", "WITH"}


def check_names(text: str, views: Collection[str]) -> None:
    """Refuse a statement that names a file, a table that is none of ``views``, or Java methods.

    ``text`` is one query, SHOW or DESCRIBE by the judgement of Spark's own parser.

    Raises:
        UsageError: the statement names one of these, or it cannot be told what it names.
    """
    try:
        first = sqlglot.tokenize(text, dialect=_DIALECT)[0]
        rest = text[first.end + 1 :]
        if first.text.upper() in _DESCRIBES:
            _check_described(rest, views)
        elif first.text.upper() == "SHOW":
            _check_shown(_words(rest), views)
        else:
            _check_query(text, views)
    except SqlglotError as error:
        at = str(error).splitlines()[0].split("\x1b")[0].strip()
        raise UsageError(
            f"which tables this reads cannot be told, so it is not run; write it plainer: {at}"
        ) from None


def _check_described(text: str, views: Collection[str]) -> None:
    words = _words(text)
    if words[0] == "QUERY":
        begin = sqlglot.tokenize(text, dialect=_DIALECT)[1].start
        _check_query(text[begin:], views)
    elif words[0] in _BEGINS_A_QUERY:
        _check_query(text, views)
    elif words[0] != "FUNCTION":
        _check_named([word for word in words if word not in _OF_A_TABLE], views)


def _check_shown(words: list[str], views: Collection[str]) -> None:
    if words[0] == "COLUMNS":
        _check_named(words[2:], views)


def _check_named(words: list[str], views: Collection[str]) -> None:
    if "." in words:
        raise UsageError(_only("a name with a dot", views))
    _check_view(words[0], views)


def _words(text: str) -> list[str]:
    return [token.text.upper() for token in sqlglot.tokenize(text, dialect=_DIALECT)]


def _check_query(text: str, views: Collection[str]) -> None:
    read = normalize_identifiers(sqlglot.parse_one(text, dialect=_DIALECT), dialect=_DIALECT)
    if not isinstance(read, exp.Query | exp.Values):
        raise UsageError(f"{type(read).__name__} is no query: SELECT, WITH and VALUES are run")
    for function in read.find_all(exp.Func):
        if _name(function) in _REACH_OUT:
            raise UsageError(
                f"{_name(function)} is refused: a query may not run programs or Java methods,"
                " nor read files"
            )
    for function in _row_functions(read):
        if _name(function) not in _TABLE_FUNCTIONS:
            raise UsageError(_only(f"{_name(function)}(…)", views))
    for table in _tables(read):
        if not isinstance(table.this, exp.Identifier) or table.db or table.catalog:
            raise UsageError(_only(".".join(part.sql(_DIALECT) for part in table.parts), views))
        _check_view(table.name, views)


def _row_functions(read: exp.Expr) -> Iterator[exp.Func]:
    for source in read.find_all(exp.Table, exp.Lateral):
        if isinstance(source.this, exp.Func):
            yield source.this


def _tables(read: exp.Expr) -> list[exp.Table]:
    """Return the tables that a query reads; the names that its own WITH defines are none."""
    own = {
        id(node)
        for scope in traverse_scope(read)
        for node, source in scope.selected_sources.values()
        if not isinstance(source, exp.Table)
    }
    hinted = {id(table) for hint in read.find_all(exp.Hint) for table in hint.find_all(exp.Table)}
    return [
        table
        for table in read.find_all(exp.Table)
        if id(table) not in own | hinted and not isinstance(table.this, exp.Func)
    ]


def _name(function: exp.Func) -> str:
    name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
    return name.lower()


def _check_view(name: str, views: Collection[str]) -> None:
    if name.lower() not in views:
        there = ", ".join(sorted(views))
        raise UsageError(f"there is no table or view `{name.lower()}`; there are: {there}")


def _only(found: str, views: Collection[str]) -> str:
    return (
        f"{found} is refused: a query reads the tables of the warehouse, by name, and nothing"
        f" else: {', '.join(sorted(views))}"
    )
