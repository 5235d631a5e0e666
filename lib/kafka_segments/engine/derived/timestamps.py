"""Which unit a timestamp may have if it is not in milliseconds."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from kafka_segments.kafka.text.moments import PER_SECOND, YEAR_2000_S, YEAR_2100_S


def guess_unit(timestamp_ms: Column) -> Column:
    """Guess the unit of a timestamp that makes no sense in ms: ``s``, ``us``, ``ns`` or null.

    A timestamp makes sense in a unit in which it falls into the years 2000 to 2100. No number
    does in two units.
    """
    guess = F.lit(None).cast("string")
    for unit, per_second in PER_SECOND.items():
        is_unit = timestamp_ms.between(YEAR_2000_S * per_second, YEAR_2100_S * per_second)
        guess = F.when(is_unit, unit).otherwise(guess)
    return guess
