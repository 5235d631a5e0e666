"""Which damage is a finding, as a column of table ``segments``."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from kafka_segments.kafka.index.segment.recovered_segment import DamageKind


def is_finding() -> Column:
    """Tell whether a segment has damage that someone must look at.

    A running broker leaves two kinds that are no findings: the zeros of a preallocated file, and
    an unfinished batch at the end of the active segment.

    Needs: damage (struct or null), is_active.
    """
    kind = F.col("damage.kind")
    is_torn = (kind == DamageKind.PARTIAL_BATCH) & F.col("is_active")
    return F.col("damage").isNotNull() & (kind != DamageKind.PREALLOCATED_TAIL) & ~is_torn
