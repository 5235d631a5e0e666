"""Add to logs of copies whether their topics' policies compact them, in the executors."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, StructType

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.verbs.copies.divergence.policies.cleanup import CleanupPolicies

_OF_LOG = ("topic", "topic_id", "cluster", "node_id")


def with_policy(policies: CleanupPolicies, cluster: str | None = None) -> Transform:
    """Add whether a log's cleanup.policy compacts it.

    Needs: rows of ``decide.frames.listed_logs``; ``cluster``: that all are of; None: as they say.
    Gives: the same, is_compact (see ``CleanupPolicies.is_compact``).
    """

    def of(log: dict[str, Any]) -> str | None:
        return (log["cluster"] or None) if cluster is None else cluster

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            logs = batch.select(_OF_LOG).to_pylist()
            told = [policies.is_compact(**{**log, "cluster": of(log)}) for log in logs]
            yield batch.append_column("is_compact", pa.array(told, pa.bool_()))

    def transform(logs: DataFrame) -> DataFrame:
        schema = StructType([*logs.schema.fields]).add("is_compact", BooleanType())
        return logs.mapInArrow(on_task, schema)

    return transform
