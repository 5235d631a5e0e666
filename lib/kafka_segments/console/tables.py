"""Tables on the terminal: as many rows as a person reads, and a line where there are more."""

from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.grouping import NUMBERS
from kafka_segments.console.output import MOST_ROWS_SHOWN, cell, print_rows
from kafka_segments.console.table_form import made_table, print_table
from kafka_segments.engine.derived.cluster_names import cluster_in_words

Cells = Callable[[Row], Iterable[str]]


def print_result(rows: DataFrame, output: str, *, names: Iterable[str], cells: Cells) -> list[Row]:
    """Print all rows as JSON lines or CSV, or the first ones as a table; return these.

    Args:
        rows: in the order in which they are printed.
        output: ``table``, ``json`` or ``csv``.
        names: headings of the table, as for ``made_table``.
        cells: returns the table's cells of a row, one for each heading. Where the rows shown are of
            several clusters, each begins with its cluster.
    """
    if output != "table":
        print_rows(rows, output)
        return []
    found = rows.take(MOST_ROWS_SHOWN + 1)
    heading, cluster_of = cluster_column(found)
    table = made_table(*heading, *names)
    for row in found[:MOST_ROWS_SHOWN]:
        table.add_row(*map(cell, (*cluster_of(row), *cells(row))))
    print_table(table, len(found))
    return found[:MOST_ROWS_SHOWN]


def alike_rows(rows: DataFrame, *same: Column | str, order: Sequence[Column]) -> DataFrame:
    """Return the first of a cluster's rows that are equal in ``same``; ``alike``: their number."""
    of_cluster = [name for name in rows.columns if name == "cluster"]
    first = F.min_by(F.struct("*"), F.struct(*order)).alias("first")
    counted = rows.groupBy(*of_cluster, *same).agg(first, F.count("*").alias("alike"))
    return counted.select("first.*", "alike").orderBy(*order)


def without_numbers(text: Column) -> Column:
    """Return the words of findings without what those that are alike differ in."""
    return F.regexp_replace(text, NUMBERS, "#")


def cluster_column(rows: Sequence[Row]) -> tuple[Sequence[str], Cells]:
    """Return the heading of a column ``cluster`` and what fills it; no column for one cluster.

    Rows that name no cluster have none.
    """
    clusters = {row["cluster"] for row in rows if "cluster" in row}
    if len(clusters) < 2:
        return (), lambda _: ()
    return ("cluster",), lambda row: (cluster_in_words(row["cluster"]),)
