"""The form of tables on the terminal, whatever their rows come from.

A number that is folded is read as another one: where a terminal is too narrow for a table's
numbers, each row is a block of lines. Texts are folded before that.
"""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.table import Column, Table
from rich.text import Text

from kafka_segments.console.lines import print_line
from kafka_segments.console.output import MOST_ROWS_SHOWN, console

_GAP = 2  # between columns
_LEAST_TEXT = 12  # letters of a text that is folded


def made_table(*names: str) -> Table:
    """Return an empty table. A heading that ends in ``>`` stands over numbers."""
    table = Table(box=None, pad_edge=False)
    for name in names:
        is_number = name.endswith(">")
        table.add_column(
            name.rstrip(">"),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_number,
        )
    return table


def print_table(table: Table, found: int) -> None:
    """Print a table, and a line that says so where more rows were found than it has."""
    show_table(table)
    if found > MOST_ROWS_SHOWN:
        print_line("… and more: --output csv prints them all")


def show_table(table: Table) -> None:
    """Print a table; where the terminal is too narrow for its numbers, a block for each row."""
    columns = [_texts(column) for column in table.columns]
    needed = sum(map(_least_width, table.columns, columns)) + _GAP * (len(columns) - 1)
    if needed <= console().width or not table.row_count:
        console().print(table)
        return
    print_blocks(
        [texts[0] for texts in columns], zip(*(texts[1:] for texts in columns), strict=True)
    )


def print_blocks(names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print each row as a block: a line for each value, behind its name."""
    width = max(map(cell_len, names))
    for number, row in enumerate(rows, start=1):
        print_line(f"-- row {number}")
        for name, value in zip(names, row, strict=True):
            print_line(f"{name.ljust(width)}  {value}".rstrip(" "))


def _texts(column: Column) -> list[str]:
    """Return the heading of a column and its cells, as they are read."""
    return [_plain(each) for each in (column.header, *column.cells)]


def _plain(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else Text.from_markup(str(cell)).plain


def _least_width(column: Column, texts: Sequence[str]) -> int:
    width = max(map(cell_len, texts))
    return width if column.no_wrap else min(width, _LEAST_TEXT)


def or_dash(value: object) -> str:
    """Return the text of a value, and a dash for None."""
    return "-" if value is None else str(value)
