"""The form of tables on the terminal, whatever their rows come from."""

from rich.table import Table

from kafka_segments.console.lines import print_line
from kafka_segments.console.output import MOST_ROWS_SHOWN, console


def made_table(*names: str) -> Table:
    """Return an empty table. A heading that ends in ``>`` stands over numbers."""
    table = Table(box=None, pad_edge=False)
    for name in names:
        is_number = name.endswith(">")
        table.add_column(
            name.rstrip(">"), justify="right" if is_number else "left", overflow="fold"
        )
    return table


def print_table(table: Table, found: int) -> None:
    """Print a table, and a line that says so where more rows were found than it has."""
    console().print(table)
    if found > MOST_ROWS_SHOWN:
        print_line("… and more: --output csv prints them all")


def or_dash(value: object) -> str:
    """Return the text of a value, and a dash for None."""
    return "-" if value is None else str(value)
