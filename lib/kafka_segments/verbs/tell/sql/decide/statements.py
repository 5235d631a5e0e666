"""Decide from its text whether a statement only reads tables and views of the warehouse.

Nobody else is asked before the statement is run: over Spark Connect there is no parser to ask. So
what is not known to be harmless is refused.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.scope import traverse_scope

from kafka_segments.errors import UsageError
from kafka_segments.verbs.tell.sql.decide.quoted import quoted_like_columns
from kafka_segments.verbs.tell.sql.functions import REACH_OUT, ROW_FUNCTIONS, SPARKS_OWN
from kafka_segments.verbs.tell.sql.tokens import (
    DIALECT,
    joined,
    no_query,
    split,
    unreadable,
    written,
)

_BEGINS_A_QUERY = {"(", "FROM", "SELECT", "VALUES", "WITH"}
_DESCRIBES = {"DESC", "DESCRIBE"}
_OF_A_TABLE = {"TABLE", "EXTENDED", "FORMATTED"}
_OF_OTHERS = {"CATALOG", "DATABASE", "DETAIL", "HISTORY", "NAMESPACE", "SCHEMA"}
_LISTS = {"TABLES", "VIEWS", "FUNCTIONS"}
_KINDS_OF_FUNCTIONS = {"ALL", "SYSTEM", "USER"}
# Words that make a query write, name a table by another way, or run a program.
_REFUSED_WORDS = {
    *("ALTER", "CACHE", "CALL", "CREATE", "DELETE", "DROP", "EXECUTE", "INSERT", "INTO", "LOAD"),
    *("MERGE", "OVERWRITE", "STREAM", "TABLE", "TRUNCATE", "UPDATE"),
}
# Words that may stand before a parenthesis and call nothing.
_BEFORE_PARENTHESES = {
    *("ALL", "AND", "ANTI", "ANY", "AS", "BETWEEN", "BOTH", "BY", "CASE", "CROSS", "CUBE"),
    *("DISTINCT", "DIV", "ELSE", "EXCEPT", "EXCLUDE", "EXISTS", "EXTEND", "FILTER", "FOR"),
    *("FROM", "FULL", "GROUP", "HAVING", "ILIKE", "IN", "INNER", "INTERSECT", "INTERVAL", "IS"),
    *("JOIN", "LATERAL", "LEADING", "LEFT", "LIKE", "LIMIT", "MINUS", "NATURAL", "NOT", "NULLS"),
    *("OFFSET", "ON", "OR", "OUTER", "OVER", "PIVOT", "QUALIFY", "REGEXP", "REPEATABLE", "RIGHT"),
    *("RLIKE", "ROLLUP", "SELECT", "SEMI", "SETS", "SOME", "TABLESAMPLE", "THEN", "TRAILING"),
    *("UNION", "UNPIVOT", "USING", "VALUES", "WHEN", "WHERE", "WINDOW"),
}
_TYPES = {"CHAR", "CHARACTER", "DEC", "DECIMAL", "NUMERIC", "TIME", "TIMESTAMP", "VARCHAR"}


@dataclass(frozen=True)
class Statement:
    """A statement that may be run.

    Attributes:
        text: what Spark is given.
        reads: the views that it names; None: all of them are listed.
        is_query: it is a query, and no SHOW or DESCRIBE of a table.
        quoted: see ``quoted_like_columns``.
    """

    text: str
    reads: frozenset[str] | None
    is_query: bool
    quoted: frozenset[str] = frozenset()


def check_names(text: str, views: Collection[str]) -> Statement:
    """Refuse a statement that does more than read ``views``; return it as Spark is given it.

    Run are one query, SHOW TABLES, VIEWS, COLUMNS and FUNCTIONS, and DESCRIBE of a view, a function
    or a query.

    Raises:
        UsageError: it is another statement, names a file or another table, calls Java, a function
            that is none of Spark's own or reads files, runs a program, or it cannot be told what it
            does.
    """
    text = text.strip().rstrip(";")
    tokens = split(text)
    words = [written(text, token).upper() for token in tokens]
    reads: frozenset[str] | None
    is_query = words[0] in _BEGINS_A_QUERY
    if words[0] in _DESCRIBES:
        reads = _check_described(text, tokens[1:], words[1:], views)
    elif words[0] == "SHOW":
        reads = _check_shown(words[1:], views)
    else:
        reads = _check_query(text, tokens, views)
    quoted = quoted_like_columns(text, tokens) if is_query else frozenset()
    return Statement(joined(text, tokens), reads, is_query, quoted)


def _check_described(
    text: str, tokens: Sequence[Token], words: Sequence[str], views: Collection[str]
) -> frozenset[str]:
    if words[:1] == ["QUERY"]:
        return _check_query(text, tokens[1:], views)
    if words and words[0] in _BEGINS_A_QUERY:
        return _check_query(text, tokens, views)
    if words[:1] == ["FUNCTION"]:
        named = words[2:] if words[1:2] == ["EXTENDED"] else words[1:]
        if len(named) != 1:
            raise no_query("DESCRIBE FUNCTION with more than a name")
        return frozenset()
    named = list(words)
    while named and named[0] in _OF_A_TABLE:
        named.pop(0)
    if named[0:1] and named[0] in _OF_OTHERS and len(named) > 1 and named[1] != ".":
        raise no_query(f"DESCRIBE {named[0]}")
    return _check_named(named, views)


def _check_shown(words: Sequence[str], views: Collection[str]) -> frozenset[str] | None:
    if words[:1] == ["COLUMNS"] and words[1:2] in (["IN"], ["FROM"]):
        return _check_named(words[2:], views)
    asked = list(words)
    if asked[1:2] == ["FUNCTIONS"] and asked[0] in _KINDS_OF_FUNCTIONS:
        asked.pop(0)
    pattern = [word for word in asked[1:] if word != "LIKE"]
    is_plain = not pattern or (len(pattern) == 1 and pattern[0][0] in "'\"")
    if not asked or asked[0] not in _LISTS or not is_plain:
        raise no_query(" ".join(["SHOW", *words]))
    return None if asked[0] != "FUNCTIONS" else frozenset()


def _check_named(words: Sequence[str], views: Collection[str]) -> frozenset[str]:
    """Check the name of a view, and of one column, or of a part of it, behind it."""
    name = words[0].replace("`", "").lower() if words else ""
    if words[1:2] == ["."]:
        raise UsageError(_only("a name with a dot", views))
    _check_view(name, views)
    if len(words) > 2 and "." not in words[2:]:
        raise no_query(f"DESCRIBE {' '.join(words)}")
    return frozenset([name])


def _check_query(text: str, tokens: Sequence[Token], views: Collection[str]) -> frozenset[str]:
    if not tokens:
        raise no_query("DESCRIBE QUERY of nothing")
    try:
        return _check_read(text, tokens, _parsed(joined(text, tokens)), views)
    except (SqlglotError, RecursionError, LookupError, TypeError, ValueError) as error:
        raise unreadable(error) from None


def _check_read(
    text: str, tokens: Sequence[Token], read: exp.Expr, views: Collection[str]
) -> frozenset[str]:
    if not isinstance(read, exp.Query | exp.Values):
        raise no_query(_kind(read))
    _check_words(text, tokens)
    _check_calls(text, tokens, read)
    for function in _row_functions(read):
        if _name(function) not in ROW_FUNCTIONS:
            raise UsageError(_only(f"{_name(function)}(…)", views))
    named = set()
    for table in _tables(read):
        if not isinstance(table.this, exp.Identifier) or table.db or table.catalog:
            raise UsageError(_only(".".join(part.sql(DIALECT) for part in table.parts), views))
        _check_view(table.name, views)
        named.add(table.name.lower())
    return frozenset(named)


def _parsed(query: str) -> exp.Expr:
    read = sqlglot.parse(query, dialect=DIALECT)
    if len(read) != 1 or read[0] is None:
        raise no_query(f"a text of {len(read)} statements")
    return normalize_identifiers(read[0], dialect=DIALECT)


def _kind(read: exp.Expr) -> str:
    return str(read.this) if isinstance(read, exp.Command) else type(read).__name__


def _check_words(text: str, tokens: Sequence[Token]) -> None:
    """Refuse what changes something, runs a program, or is a table without being named as one."""
    before = ""
    for token in tokens:
        if token.token_type == TokenType.STRING and before == "USING":
            raise UsageError("USING a program is refused: a query may not run programs")
        before = written(text, token).upper()
        for word in _REFUSED_WORDS.intersection(before.split()):
            raise UsageError(
                f"{word} is refused: a query reads, and names tables after FROM or JOIN"
            )


def _check_calls(text: str, tokens: Sequence[Token], read: exp.Expr) -> None:
    """Refuse every call but those of Spark's own functions that compute."""
    declared = {
        alias.name.lower() for alias in read.find_all(exp.TableAlias) if alias.args.get("columns")
    }
    for place, token in enumerate(tokens[1:], start=1):
        word = written(text, tokens[place - 1])
        if token.token_type != TokenType.L_PAREN or not _is_name(word):
            continue
        name = word.split()[-1].replace("`", "").lower()
        if name in REACH_OUT:
            raise UsageError(
                f"{name} is refused: a query may not run programs or Java methods, nor read files"
            )
        if word.split()[-1].upper() in _BEFORE_PARENTHESES | _TYPES or name in declared:
            continue
        if name not in SPARKS_OWN or (place > 1 and written(text, tokens[place - 2]) == "."):
            raise _no_function(word)
    hinted = {id(call) for hint in read.find_all(exp.Hint) for call in hint.walk()}
    for call in read.find_all(exp.Anonymous):
        if id(call) not in hinted and call.name.lower() not in SPARKS_OWN:
            raise _no_function(call.name)


def _no_function(name: str) -> UsageError:
    return UsageError(f"{name}(…) is refused: it is no function of Spark's that computes")


def _is_name(word: str) -> bool:
    return word[0] in "`_" or word[0].isalnum()


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
