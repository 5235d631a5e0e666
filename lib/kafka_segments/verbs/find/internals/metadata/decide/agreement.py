"""Up to where the copies of a metadata log agree, and what of it is committed.

A record is committed once a majority of the voters has it. Of two copies that have the same offset
in the same leader epoch both have the same record there, or one of them is damaged or forged.
Source: LeaderState.updateHighWatermark; Raft's log matching property.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.kafka.messages.control import RECORDS as CONTROL_RECORDS

_VOTER = StructType(row_fields("copy int, first_offset long"))
COPIES = StructType(
    [
        *(field for field in INTERNAL_RECORDS.schema if field.name in LOG_KEYS),
        *row_fields("copy int, first_offset long", voters=ArrayType(_VOTER)),
    ]
)
"""Copies of a log: keys, number, first offset, and number and first offset of voters' copies."""
_SAYS_NOTHING = ("NoOpRecord", *sorted({layout.name for layout in CONTROL_RECORDS.values()}))
_CONTENT = ("kind", "key_version", "value_version", "key_json", "value_json", "key", "value")


class Agreement(NamedTuple):
    """Where a copy of the metadata log parts from others; None: nowhere.

    Attributes:
        copy: its number.
        lacked_from: the first offset that a majority of the voters' copies lacks.
        outvoted_at: the first offset at which not more than half of the copies that have it, in the
            same leader epoch, have the same record.
        contradicted_at: the first offset at which some copy has another one.
        says_until: the last offset of a record that changes the state.
    """

    copy: int
    lacked_from: int | None
    outvoted_at: int | None
    contradicted_at: int | None
    says_until: int | None

    @property
    def end_offset(self) -> int | None:
        """The first offset that does not count; None: all of them do."""
        ends = [one for one in (self.lacked_from, self.outvoted_at) if one is not None]
        return min(ends, default=None)


def find_agreement(copies: DataFrame) -> Transform:
    """Hold the copies of each cluster's metadata log against each other.

    1. A voter's copy lacks a record where it has none at its offset, or another one, and its own
       log does not begin behind it.
    2. Where more than half of the voters' copies lack it, it is not committed, nor what follows.

    Needs: rows of ``internal_records`` of metadata logs; ``copies``: a row of ``COPIES`` for each.
    Gives: the columns of ``Agreement``.
    """
    lacks = F.filter(
        "voters",
        lambda voter: (
            (voter["first_offset"] <= F.col("offset"))
            & ~F.array_contains(F.col("_holders"), voter["copy"])
        ),
    )
    is_lacked = F.size(lacks) * 2 > F.size("voters")
    is_contradicted = F.col("_others") > F.size("_holders")
    is_outvoted = is_contradicted & (F.size("_holders") * 2 <= F.col("_others"))
    says = ~F.col("kind").isin(*_SAYS_NOTHING)
    of_place = ("cluster", "offset", "leader_epoch")

    def transform(records: DataFrame) -> DataFrame:
        held = (
            records.where(F.col("kind").isNotNull() & ~F.col("is_snapshot"))
            .where(F.col("offset").isNotNull())
            .join(F.broadcast(copies), list(LOG_KEYS), how="inner")
            .where(F.col("offset") >= F.col("first_offset"))
            .withColumn("_content", F.xxhash64(*_CONTENT))
        )
        same = held.groupBy(*of_place, "_content").agg(
            F.collect_set("copy").alias("_holders"),
            F.first("voters").alias("voters"),
            F.first("kind").alias("kind"),
        )
        others = same.groupBy(*of_place).agg(F.sum(F.size("_holders")).alias("_others"))
        return (
            same.join(others, list(of_place), how="inner")
            .withColumn("copy", F.explode("_holders"))
            .groupBy("copy")
            .agg(
                *(
                    F.min(F.when(condition, F.col("offset"))).alias(name)
                    for name, condition in zip(
                        Agreement._fields[1:4],
                        (is_lacked, is_outvoted, is_contradicted),
                        strict=True,
                    )
                ),
                F.max(F.when(says, F.col("offset"))).alias("says_until"),
            )
        )

    return transform


def is_of(keys: Sequence[Any]) -> Column:
    """Tell whether a row is of the log that these keys name."""
    named = F.lit(True)
    for key, value in zip(LOG_KEYS, keys, strict=True):
        named &= F.col(key) == value
    return named
