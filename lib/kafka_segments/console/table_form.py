"""The form of tables on the terminal, whatever their rows come from.

A number that is folded is read as another one, and so is a name: where a terminal is too narrow for
a table's numbers and words, each row is a block of lines. Sentences are folded before that, and
words as long as paths.
"""

from collections.abc import Iterable, Sequence
from textwrap import wrap

from rich.cells import cell_len
from rich.table import Column, Table
from rich.text import Text

from kafka_segments.console.lines import print_line
from kafka_segments.console.output import MOST_ROWS_SHOWN, console

_GAP = 2  # between columns
_MOST_WORD = 30  # letters of a word that is not folded
_LEAST_VALUE = 20  # letters of a line of a value in a block


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
    for column, texts in zip(table.columns, columns, strict=True):
        column.min_width = _least_width(column, texts)
    needed = sum(column.min_width or 0 for column in table.columns) + _GAP * (len(columns) - 1)
    if needed <= console().width or not table.row_count:
        console().print(table)
        return
    print_blocks(
        [texts[0] for texts in columns], zip(*(texts[1:] for texts in columns), strict=True)
    )


def print_blocks(names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print each row as a block: each value behind its name, on lines that end between words."""
    width = max(map(cell_len, names))
    left = max(console().width - width - _GAP, _LEAST_VALUE)
    for number, row in enumerate(rows, start=1):
        print_line(f"-- row {number}")
        for name, value in zip(names, row, strict=True):
            first, *others = _lines(value, left)
            print_line(f"{name.ljust(width)}  {first}".rstrip(" "))
            for line in others:
                print_line(f"{' ' * (width + _GAP)}{line}")


def _lines(value: str, width: int) -> list[str]:
    """Return the lines of a text; a word that is too long for one stays whole."""
    if cell_len(value) <= width:
        return [value]
    return wrap(value, width, break_long_words=False, break_on_hyphens=False) or [""]


def _texts(column: Column) -> list[str]:
    """Return the heading of a column and its cells, as they are read."""
    return [_plain(each) for each in (column.header, *column.cells)]


def _plain(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else Text.from_markup(str(cell)).plain


def _least_width(column: Column, texts: Sequence[str]) -> int:
    if column.no_wrap:
        return max(map(cell_len, texts))
    words = (word for text in texts for word in text.split())
    return min(max(map(cell_len, words), default=0), _MOST_WORD)


def or_dash(value: object) -> str:
    """Return the text of a value, and a dash for None."""
    return "-" if value is None else str(value)
