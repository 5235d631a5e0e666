"""Which engine works on what a verb reads; ``limits`` has every limit by which that is chosen.

On small data the driver reads with Arrow and one task runs a query that is not compiled: Spark
compiles a Java program for each query, starts Python workers, and caches frames, and on few rows
each of these takes longer than the query. On all else Spark works as it does by itself.

A verb begins with a session that takes all for few rows (``few_rows``). How much it has found, and
what is to be done with rows, it says by ``engine/frames``, whose two engines ask here.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from kafka_segments.engine.spark.connect import is_connect, is_on_this_machine
from kafka_segments.engine.spark.settings import restore, settings_meanwhile
from kafka_segments.engine.spark.shared_folders import shares_folder

_FEW_ROWS = "spark.kafkaSegments.fewRows"
_FEW = {_FEW_ROWS: "true", "spark.sql.codegen.wholeStage": "false"}
_INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
# A session of our own has these already.
_OF_A_CLIENT = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "4"}
_CLIENTS: WeakKeyDictionary[SparkSession, Mapping[str, str | None]] = WeakKeyDictionary()
"""Sessions of Spark Connect in which a verb works on few rows, with their settings before it.

A session of our own is asked. To ask a server each time would take longer than the steps do.
"""


@contextmanager
def few_rows(
    spark: SparkSession, *, of: str | None = None, runs_any_query: bool = False
) -> Iterator[None]:
    """Treat all that is read in this block as few rows, until ``expect_many_rows`` is called.

    What a verb reads is small where the tables that it reads are. Before and after it the session
    is as it was. A client of Spark Connect works on few rows where the server is on this machine,
    and sees the warehouse that the client sees.

    ``of``: the warehouse of the verb, None: it has none.
    ``runs_any_query``: single expressions are compiled all the same. Spark tests little of what it
    can do without, and some of it, such as listing tables, fails then.
    """
    settings = _FEW if runs_any_query else _FEW | _INTERPRETED
    if not is_connect(spark):
        with settings_meanwhile(spark, settings):
            yield
        return
    if not (is_on_this_machine(spark) if of is None else shares_folder(spark, of)):
        yield
        return
    with settings_meanwhile(spark, settings | _OF_A_CLIENT) as before:
        _CLIENTS[spark] = before
        try:
            yield
        finally:
            _CLIENTS.pop(spark, None)


def has_few_rows(spark: SparkSession) -> bool:
    """Tell whether a verb takes all that it reads for few rows."""
    if is_connect(spark):
        return spark in _CLIENTS
    return spark.conf.get(_FEW_ROWS, None) == "true"


def can_work_in_driver(spark: SparkSession) -> bool:
    """Tell whether a verb works on few rows where the driver sees what the executors see."""
    if is_connect(spark):
        return has_few_rows(spark)
    return has_few_rows(spark) and (spark.sparkContext.master or "").startswith("local")


def expect_many_rows(spark: SparkSession) -> None:
    """Compile the plans of the queries that come, as Spark does by itself."""
    if is_connect(spark):
        restore(spark, _CLIENTS.pop(spark, {}))
    elif has_few_rows(spark):
        restore(spark, dict.fromkeys(_FEW | _INTERPRETED))
