"""Which run of a table is the last one: the one that committed last."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.files.delta.log import last_appended
from kafka_segments.files.storage.uris import join_uri


def of_last_run(
    tables: Warehouse, table: Table, rows: DataFrame, *, moment: str = "decided_at"
) -> DataFrame:
    """Keep the rows of the run that committed to the table last.

    The moment for which a run decided says nothing of when it ran: it may have been asked about a
    moment of the future, or had a clock that was wrong. Where the table's log does not tell, the
    run of the greatest moment is taken for the last.

    Needs: run_id, the column of the moment.
    Gives: the same columns.
    """
    last = last_appended(join_uri(tables.root, table.name), "run_id")
    if last is not None:
        return rows.where(F.col("run_id") == last)
    greatest = rows.agg(F.max_by("run_id", F.struct(moment, "run_id")).alias("run_id"))
    return rows.join(F.broadcast(greatest), "run_id", how="left_semi")
