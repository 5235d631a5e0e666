"""What somebody else asks of the rows of a table, so that Delta refuses ours, in words."""

import re

from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.statements import delta_table
from kafka_segments.errors import UsageError

_APPENDS_ALONE = "DELTA_CANNOT_MODIFY_APPEND_ONLY"
_CONSTRAINT = re.compile(
    r"\[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES\] CHECK constraint (\S+) (\(.*\)) violated"
)


def refuse_others_rules(table: Table, uri: str, error: Exception) -> None:
    """Refuse to go on where a write to a table, at ``uri``, failed by a rule of somebody else.

    Raises:
        UsageError: the table takes appends alone, or a constraint does not hold for new rows.
    """
    text = str(error)
    if _APPENDS_ALONE in text:
        raise UsageError(
            f"{uri} takes appends alone (delta.appendOnly), and this run replaces rows: nothing was"
            f" written to it. ALTER TABLE {delta_table(uri)} SET TBLPROPERTIES"
            " ('delta.appendOnly' = 'false') lets it; then run it again"
        ) from error
    violated = _CONSTRAINT.search(text)
    if violated is not None and violated[1] not in dict(table.constraints):
        name, condition = violated.groups()
        raise UsageError(
            f"{uri} has a constraint {name} that new rows do not meet, {condition}: nothing was"
            f" written to it. ALTER TABLE {delta_table(uri)} DROP CONSTRAINT {name} lets them in;"
            " then run it again"
        ) from error
