"""Which damage is a finding, as a column of table ``segments`` or ``internal_records``."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from kafka_segments.kafka.index.segment.recovered_segment import DamageKind

# What ``describe_end`` of ``wire.ends`` says of an incomplete batch at the end of a file.
TORN = "bytes left, too few for a batch|bytes, [0-9]+ are left in the file"


def is_finding() -> Column:
    """Tell whether a segment has damage that someone must look at.

    A running broker leaves two kinds that are no findings: the zeros of a preallocated file, and
    an unfinished batch at the end of the active segment.

    Needs: damage (struct or null), is_active.
    """
    kind = F.col("damage.kind")
    is_torn = (kind == DamageKind.PARTIAL_BATCH) & F.col("is_active")
    return F.col("damage").isNotNull() & (kind != DamageKind.PREALLOCATED_TAIL) & ~is_torn


def hides_rest() -> Column:
    """Tell whether a finding hides the rest of a segment, from which recovery cuts it.

    Needs: damage (struct or null), is_active, truncated_bytes.
    """
    return is_finding() & (F.col("truncated_bytes") > 0)


def is_torn() -> Column:
    """Tell whether a row of ``internal_records`` is a last batch that is not there to its end."""
    return F.col("offset").isNull() & F.coalesce(F.col("problem").rlike(TORN), F.lit(False))


def is_unreadable() -> Column:
    """Tell whether a row of ``internal_records`` is damage that someone must look at.

    An incomplete batch is no damage in the last segment: a broker was writing it.

    Needs: rows of ``internal_records`` with is_active (``with_file_facts``).
    """
    is_active = F.coalesce("is_active", F.lit(False))
    return F.col("problem").isNotNull() & ~(is_active & is_torn())
