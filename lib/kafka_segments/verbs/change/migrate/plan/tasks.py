"""Look at segments in the executors: rows of a listing in, facts out."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField

from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.verbs.change.migrate.decide.actions import SegmentAction
from kafka_segments.verbs.change.migrate.plan.segment_survey import SegmentSurveyor
from kafka_segments.verbs.change.migrate.planned_rows import (
    Row,
    listed_segment,
    made_by_rules,
    with_made_columns,
)

SURVEYED = (
    StructField("magics", ArrayType(IntegerType(), False)),
    *row_fields(
        "batch_count long, max_timestamp_ms long, damage string, problem string,"
        " unmodelled string, cut_bytes long"
    ),
    StructField("index_findings", ArrayType(StringType(), False)),
    *row_fields("converted_bytes long, largest_batch_bytes long"),
    StructField("conversion_hazards", ArrayType(StringType(), False)),
    StructField("conversion_refusal", StringType()),
)
_UNPLANNED: Row = {"root": "", "action": SegmentAction.KEEP, "cut_bytes": 0}


def survey_segments(segments: DataFrame) -> DataFrame:
    """Look at every segment of a listing.

    Needs: path (of a local .log), base_offset, next_base_offset, size_bytes, mtime_ns, rules.
    Gives: the same columns and those of ``SURVEYED``.
    """

    def make() -> Callable[[Row], Row]:
        surveyor = made_by_rules(SegmentSurveyor)
        return lambda row: surveyor(row).survey(listed_segment(row | _UNPLANNED))

    return with_made_columns(segments, SURVEYED, make)
