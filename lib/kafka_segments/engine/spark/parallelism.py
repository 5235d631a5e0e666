"""How many tasks a session runs at once: of a session in this process, and of Spark Connect."""

import re
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

_SPLITS = re.compile(r"\bsplits=([0-9]+)")
_WHERE_IT_DOES_NOT_SAY = 16
_TOLD: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()


def default_parallelism(spark: SparkSession) -> int:
    """Return the number of tasks into which Spark splits rows by default: its cores, as a rule.

    A Connect server says it by the physical plan of a range, once a session. Nothing is run for it.
    """
    if type(spark) is SparkSession:  # a client's is another class
        return spark.sparkContext.defaultParallelism
    if spark not in _TOLD:
        plan = spark.sql("EXPLAIN SELECT * FROM range(1)").collect()[0][0]
        found = _SPLITS.search(plan)
        _TOLD[spark] = int(found[1]) if found else _WHERE_IT_DOES_NOT_SAY
    return _TOLD[spark]
