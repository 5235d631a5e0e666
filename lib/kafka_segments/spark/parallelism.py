"""How many tasks a session runs at once, asked so that a driver's session and Connect's answer."""

import re

from pyspark.sql import SparkSession

_SPLITS = re.compile(r"\bsplits=([0-9]+)")
_WHERE_IT_DOES_NOT_SAY = 16


def default_parallelism(spark: SparkSession) -> int:
    """Return into how many tasks Spark splits what nobody has split: its cores, as a rule.

    A Connect server says it by the physical plan of a range. Nothing is run for it.
    """
    if type(spark) is SparkSession:  # a client's is another class
        return spark.sparkContext.defaultParallelism
    plan = spark.sql("EXPLAIN SELECT * FROM range(1)").collect()[0][0]
    found = _SPLITS.search(plan)
    return int(found[1]) if found else _WHERE_IT_DOES_NOT_SAY
