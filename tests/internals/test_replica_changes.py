"""Which moves of replicas are told as changes."""

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import METADATA_CONFIGS, METADATA_PARTITIONS
from kafka_segments.verbs.find.internals.metadata.decide.changes import decide_changes, steps_of

# Most columns are null here.
SCHEMA = StructType([StructField(one.name, one.dataType) for one in METADATA_PARTITIONS.schema])


def partition(since: int, until: int | None, **values: Any) -> tuple[Any, ...]:
    """Give a row of a partition that held from an offset until another."""
    row = {
        **{"cluster": "c", "topic": "t", "topic_id": "id", "partition": 0, "leader": 1},
        **{"leader_epoch": 0, "from_offset": since, "from_ms": 1_000 * since},
        **{"until_offset": until, "is_from_snapshot": False, "adding_replicas": []},
        **{"removing_replicas": [], **values},
    }
    return tuple(row.get(name) for name in SCHEMA.fieldNames())


def test_replicas_are_told_when_they_move_and_not_when_they_begin_or_end(
    spark: SparkSession,
) -> None:
    rows = [
        partition(1, 2, replicas=[1, 2]),
        partition(2, 5, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[1]),
        partition(5, 6, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[1], leader=2),
        partition(6, 9, replicas=[2, 3], leader=2),
    ]
    steps = steps_of(
        local_rows(spark, [], METADATA_CONFIGS.schema), local_rows(spark, rows, SCHEMA)
    )

    found = steps.transform(decide_changes(since_ms=None)).where("kind = 'replicas'").collect()

    assert sorted(tuple(row[1:]) for row in found) == [
        (2, 2_000, "replicas", "t-0", "1,2", "1,2,3", "adding 3; removing 1"),
        (6, 6_000, "replicas", "t-0", "1,2,3", "2,3", None),
    ]
