"""The tables of a warehouse opened, and the data source made known to a session."""

from os import fspath

from pyspark.sql import SparkSession

from kafka_segments.api.arguments import FilePath
from kafka_segments.api.warehouse import OpenWarehouse
from kafka_segments.console.early import ANY_TABLE, require_tables
from kafka_segments.engine.rows import datasource
from kafka_segments.engine.rows.workers import require_package
from kafka_segments.files.storage.typed_uris import absolute_uri


def open(warehouse: FilePath, spark: SparkSession | None = None) -> OpenWarehouse:
    """Open the tables that `kafka-segments build` made.

    Args:
        warehouse: path or URI of the folder of the tables.
        spark: the session to use; by default the running one, else one of our own, local, with
            all that Delta needs, which ``close`` stops.

    Raises:
        UsageError: there are no tables, there is no Java or no JARs for a session of our own, or
            the running session has no Delta.
    """
    root = fspath(warehouse)
    require_tables(root, (ANY_TABLE,))
    return OpenWarehouse(absolute_uri(root), spark)


def register(spark: SparkSession) -> None:
    """Make ``spark.read.format("kafka_segments")`` known to a session.

    In a local session the workers run the driver's Python from then on, unless PYSPARK_PYTHON
    names another. Elsewhere they are asked, by a job of one row, whether they have this package.

    Raises:
        UsageError: the Python of the workers lacks this package, or has another release of it.
    """
    datasource.register(spark)
    require_package(spark)
