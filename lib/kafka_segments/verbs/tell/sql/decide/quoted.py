"""Texts in double quotes that stand where a column would: Spark takes them for texts."""

from collections.abc import Sequence

import sqlglot
from sqlglot import Token, TokenType, exp

from kafka_segments.verbs.tell.sql.tokens import DIALECT, joined, written

# A value ends where one of these has it as a part.
_HOLD_VALUES = (
    *(exp.Query, exp.Connector, exp.Not, exp.Paren, exp.Alias, exp.Where, exp.Having),
    *(exp.Group, exp.Order, exp.Ordered, exp.Join, exp.Qualify, exp.Values),
)


def quoted_like_columns(text: str, tokens: Sequence[Token]) -> frozenset[str]:
    """Return the texts in double quotes that are in a value with no column in it.

    Other engines take ``"topic" = 'txn'`` for a question about a column. In ``topic = "txn"`` a
    text is what is meant.
    """
    quoted = {
        token.text
        for token in tokens
        if token.token_type == TokenType.STRING and written(text, token).startswith('"')
    }
    if not quoted:
        return frozenset()
    read = sqlglot.parse_one(joined(text, tokens), dialect=DIALECT)
    return frozenset(
        literal.name
        for literal in read.find_all(exp.Literal)
        if literal.is_string and literal.name in quoted and not _value_of(literal).find(exp.Column)
    )


def _value_of(part: exp.Expr) -> exp.Expr:
    """Return the whole value that a literal is a part of, as the comparison that it stands in."""
    while part.parent is not None and not isinstance(part.parent, _HOLD_VALUES):
        part = part.parent
    return part
