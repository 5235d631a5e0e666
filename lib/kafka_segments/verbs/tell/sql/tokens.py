"""The words of a statement, and the text that Spark is given of it.

Two programs split a text into words: sqlglot, by which a statement is judged, and Spark. What they
would split differently is refused, and Spark is given words alone: what is between them, as
comments are, it does not get.
"""

import re
from collections.abc import Sequence

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from kafka_segments.errors import UsageError

DIALECT = "databricks"
_RUN = "SELECT, WITH, VALUES, SHOW TABLES, VIEWS, COLUMNS, FUNCTIONS and DESCRIBE are run"
# Texts, names in quotes and hints as Spark's grammar has them; in all else there are no quotes.
_FORMS = {
    TokenType.STRING: re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""", re.DOTALL),
    TokenType.IDENTIFIER: re.compile(r"`(?:[^`]|``)+`", re.DOTALL),
    TokenType.HEX_STRING: re.compile(r"[xX]'[0-9a-fA-F]*'"),
    TokenType.HINT: re.compile(r"/\*\+[\sA-Za-z0-9_,()]*\*/"),
}
_WORDS = r"[A-Za-z0-9_]+(?:[ \t\r\n]+[A-Za-z0-9_]+)*"  # sqlglot takes GROUP BY for one
_NUMBER = r"[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?[A-Za-z]*"
_SIGN = r"[-+*/%|&^~!=<>.,:;()\[\]]{1,3}"
_PLAIN = re.compile(f"{_WORDS}|{_NUMBER}|{_SIGN}")
_NO_LINE_END = re.compile(r"[^\n]")
_LACKS = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]+'>")


def split(text: str) -> list[Token]:
    """Return the words of a statement.

    Raises:
        UsageError: the text is empty, or it cannot be told what Spark would make of it.
    """
    try:
        tokens = sqlglot.tokenize(text, dialect=DIALECT)
    except SqlglotError as error:
        raise unreadable(error) from None
    if not tokens:
        raise UsageError(f"an empty statement: {_RUN}")
    if tokens[0].token_type == TokenType.SHOW:  # sqlglot takes what follows for one text
        end = tokens[0].end + 1
        return [tokens[0], *(_moved(token, end) for token in _split_rest(text[end:]))]
    if tokens[0].token_type == TokenType.COMMAND:  # and for one text here
        raise no_query(tokens[0].text.upper())
    for token in tokens:
        form = _FORMS.get(token.token_type, _PLAIN)
        if not form.fullmatch(written(text, token)):
            raise UsageError(
                f"{written(text, token)[:40]!r} at character {token.start + 1} is refused: what"
                " Spark makes of it cannot be told; write it plainer"
            )
    return tokens


def _split_rest(text: str) -> list[Token]:
    return split(text) if text.strip() else []


def _moved(token: Token, by: int) -> Token:
    return Token(token.token_type, token.text, start=token.start + by, end=token.end + by)


def written(text: str, token: Token) -> str:
    """Return a word as it stands in the text."""
    return text[token.start : token.end + 1]


def joined(text: str, tokens: Sequence[Token]) -> str:
    """Return the words of a text alone, each at its line and position: between them are spaces."""
    parts: list[str] = []
    end = 0
    for token in tokens:
        if token.start < end:  # of 1L sqlglot makes three words
            continue
        parts.append(_NO_LINE_END.sub(" ", text[end : token.start]))
        parts.append(written(text, token))
        end = token.end + 1
    return "".join(parts)


def no_query(what: str) -> UsageError:
    """Return the refusal of a statement that is none of those which read."""
    return UsageError(f"{what} is no query: {_RUN}")


def unreadable(error: Exception) -> UsageError:
    """Return the refusal of a text that is no SQL, or of which it cannot be told what it reads."""
    lines = str(error).splitlines() or [type(error).__name__]
    at = _LACKS.sub("an expression is missing", lines[0].split("\x1b")[0].strip())
    return UsageError(
        f"which tables this reads cannot be told, so it is not run; write it plainer: {at}"
    )
