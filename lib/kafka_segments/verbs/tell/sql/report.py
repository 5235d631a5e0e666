"""What ``sql`` prints."""

from collections import Counter

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, NumericType, StructType
from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

from kafka_segments.console.lines import print_line
from kafka_segments.console.output import JSON_FORM, console, print_rows
from kafka_segments.console.table_form import print_blocks
from kafka_segments.errors import UsageError
from kafka_segments.kafka.text.plain_text import first_of, plain

MOST_ROWS_SHOWN = 1000
_GAP = 2


def print_sql(rows: DataFrame, output: str) -> None:
    """Print the rows of a query: a row a line, or a value a line where that is too wide.

    Raises:
        UsageError: two columns have one name, of which readers of JSON keep one; or two fields of a
            struct, which is JSON in every form.
    """
    if output == "json":
        _refuse_twice(rows.schema, "columns")
        print_rows(rows, output)
        return
    for column in rows.schema:
        _refuse_twice(column.dataType)
    texts = _as_text(rows)
    if output == "csv":
        print_rows(texts, output)
        return
    shown = [
        ["" if value is None else plain(value) for value in row]
        for row in texts.take(MOST_ROWS_SHOWN + 1)
    ]
    is_cut = len(shown) > MOST_ROWS_SHOWN
    shown = shown[:MOST_ROWS_SHOWN]
    widths = [
        max(map(cell_len, column), default=0) for column in zip(rows.columns, *shown, strict=True)
    ]
    if sum(widths) + _GAP * len(widths) <= console().width or not shown:
        _print_lines(rows, shown)
    else:
        print_blocks(rows.columns, shown)
    if is_cut:
        print_line("… and more: --output csv prints them all")


def _refuse_twice(kind: DataType, what: str = "fields of a struct") -> None:
    if isinstance(kind, StructType):
        twice = [name for name, count in Counter(kind.names).items() if count > 1]
        if twice:
            raise UsageError(
                f"two {what} are named {first_of(twice, 3)}, and a JSON object has one of a name:"
                " give each a name of its own by AS"
            )
        for field in kind:
            _refuse_twice(field.dataType)
    elif isinstance(kind, ArrayType):
        _refuse_twice(kind.elementType)
    elif isinstance(kind, MapType):
        _refuse_twice(kind.keyType)
        _refuse_twice(kind.valueType)


def _print_lines(rows: DataFrame, shown: list[list[str]]) -> None:
    table = RichTable(box=None, pad_edge=False)
    for field in rows.schema:
        is_number = isinstance(field.dataType, NumericType)
        table.add_column(Text(plain(field.name)), justify="right" if is_number else "left")
    for row in shown:
        table.add_row(*map(Text, row))
    console().print(table)


def _as_text(rows: DataFrame) -> DataFrame:
    """Return every value as text, as Spark writes it: some fit into no Python object."""
    places = [f"c{place}" for place in range(len(rows.columns))]
    columns = [
        _text(F.col(place), field.dataType).alias(field.name)
        for place, field in zip(places, rows.schema, strict=True)
    ]
    return rows.toDF(*places).select(*columns)  # a query may give two columns one name


def _text(column: Column, kind: DataType) -> Column:
    if isinstance(kind, ArrayType | MapType | StructType):
        return F.to_json(column, JSON_FORM)
    if isinstance(kind, BinaryType):
        return F.base64(column)  # as in JSON
    return column.cast("string")
