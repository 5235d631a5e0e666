"""What a listing could not read of the small files of brokers, of rows as a DataFrame."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.frames.driver_rows import where_set, with_values
from kafka_segments.engine.frames.local_rows import rows_in_driver
from kafka_segments.engine.sources.broker_identity import file_path
from kafka_segments.files.folders.kinds import WITH_NOTES
from kafka_segments.files.folders.unread_notes import NOTES_READ, UnreadNotes


def find_unread(listed: DataFrame) -> UnreadNotes:
    """Return what rows of a listing say of it, as ``unread_in`` does."""
    unread = where_set(with_values(listed, {"kind": WITH_NOTES}), "reason")
    here = rows_in_driver(unread)
    if here is not None and not here.num_rows:
        return NOTES_READ
    told = F.min(F.concat(file_path(), F.lit(": "), F.col("reason")))
    found = unread.agg(F.count("*"), F.coalesce(told, F.lit(""))).first()
    return NOTES_READ if found is None else UnreadNotes(*found)
