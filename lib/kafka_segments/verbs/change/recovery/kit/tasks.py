"""Read and fold the logs of a kit on Spark: segments side by side, then each log in one task."""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StructField, StructType

from kafka_segments.engine.frames.local_rows import stream_rows
from kafka_segments.engine.frames.packing import TellLoad, packed, tasks_for, tell_nobody
from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.limits import Load
from kafka_segments.verbs.change.recovery.kit.listing import KitWork
from kafka_segments.verbs.change.recovery.kit.plan import LogPlan
from kafka_segments.verbs.change.recovery.kit.run import (
    KitOptions,
    fold_planned,
    new_scanner,
    scan_segment,
)
from kafka_segments.verbs.change.recovery.kit_manifest import LogKit, folder_of, read_log

_PLACE = row_fields("log int, at int")
_SEGMENTS = StructType(
    [*_PLACE, *row_fields("relative_path string, base_offset long, size_bytes long")]
)
_SCANNED = StructType([*_PLACE, StructField("scanned", BinaryType())])
_FOLDED = StructType([_PLACE[0]])
_Batches = Iterable[pa.RecordBatch]


class SparkReader:
    """Reads and folds the logs of a kit on Spark, whose executors have the disks and the kit."""

    def __init__(self, spark: SparkSession, tell: TellLoad = tell_nobody) -> None:
        self._spark = spark
        self._tell = tell

    def __call__(self, work: KitWork, options: KitOptions) -> Iterator[LogKit]:
        """Yield what the kit says of each log.

        The rows that come to the driver hold the log's number alone. What segments do to producers
        grows with the log, so it stays in the executors.
        """
        if not work.plans:
            return
        load = Load(work.segments, work.read_bytes)
        tasks = tasks_for(self._spark, load)
        scanned = (
            self._spark.createDataFrame(_segments(work.plans))
            .transform(packed(load, self._tell))
            .mapInArrow(_Scan(work.plans, options), _SCANNED)
        )
        folded = (
            scanned.repartition(min(tasks, len(work.plans)), "log")
            .sortWithinPartitions("log", "at")
            .mapInArrow(_Fold(work.plans, options), _FOLDED)
        )
        for row in stream_rows(folded):
            plan = work.plans[row["log"]]
            yield read_log(folder_of(Path(options.out), plan.number), plan.log)


def _segments(plans: Sequence[LogPlan]) -> pa.Table:
    rows = [
        (log, at, plan.folder, segment.base_offset, segment.size_bytes)
        for log, plan in enumerate(plans)
        for at, segment in enumerate(plan.segments)
    ]
    schema = to_arrow_schema(_SEGMENTS)
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


class _Scan:
    def __init__(self, plans: Sequence[LogPlan], options: KitOptions) -> None:
        self._plans = plans
        self._options = options

    def __call__(self, batches: _Batches) -> Iterator[pa.RecordBatch]:
        scanner, schema = new_scanner(self._options), to_arrow_schema(_SCANNED)
        for batch in batches:
            for row in batch.select(["log", "at"]).to_pylist():
                plan = self._plans[row["log"]]
                scanned = scan_segment(scanner, plan, row["at"], self._options.out)
                yield pa.RecordBatch.from_pylist(
                    [{**row, "scanned": pickle.dumps(scanned)}], schema=schema
                )


class _Fold:
    def __init__(self, plans: Sequence[LogPlan], options: KitOptions) -> None:
        self._plans = plans
        self._options = options

    def __call__(self, batches: _Batches) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        schema = to_arrow_schema(_FOLDED)
        for log, of_log in groupby(rows, key=itemgetter("log")):
            scanned = (pickle.loads(row["scanned"]) for row in of_log)  # noqa: S301  our own rows
            fold_planned(self._plans[log], scanned, self._options)
            yield pa.RecordBatch.from_pylist([{"log": log}], schema=schema)
