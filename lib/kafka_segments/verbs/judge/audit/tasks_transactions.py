"""Judge ``.txnindex`` files by their whole logs, in the executors: transactions cross segments."""

import pickle
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from kafka_segments.engine.frames.driver_rows import by_keys, where_set
from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.kafka.broker_rules.index_files.judgement import Judgement
from kafka_segments.kafka.broker_rules.index_files.transactions import hold_against_log
from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.kafka.index.log.segment_fold import SegmentFold
from kafka_segments.kafka.index.segment.recovered_segment import SegmentSummary
from kafka_segments.verbs.judge.audit.decide.consequences import SegmentState
from kafka_segments.verbs.judge.audit.decide.tiered import consequence_anywhere
from kafka_segments.verbs.judge.audit.rows import AUDITED, Row, audit_row, to_batches

_LOG = ("source", "relative_path")


class UnfoldedSegment(NamedTuple):
    """A segment whose ``.txnindex``, a file ``name``, is still to be judged by the whole log.

    ``judgement`` is by the segment alone; None: there is no file. ``summary`` None: the segment
    could not be read, so it is not known which transactions it left open.
    """

    name: str
    found: bytes | None
    judgement: Judgement | None
    summary: SegmentSummary | None
    state: SegmentState
    recovered: str | None
    link: str | None = None


def judge_log_transactions(rows: Iterable[Row], version: Version) -> Iterator[Row]:
    """Yield the rows of one log's ``.txnindex`` files, from its segments in order."""
    fold = SegmentFold()
    is_known = True
    for row in rows:
        segment: UnfoldedSegment = pickle.loads(row["unfolded"])  # noqa: S301  our own
        judgement = segment.judgement
        is_known = is_known and segment.summary is not None
        if is_known and segment.summary is not None:
            verdict = fold.take(segment.summary)
            if verdict.damage is None:
                judgement = hold_against_log(judgement, segment.found, verdict.aborted)
        if judgement is None:
            continue
        size = None if segment.found is None else len(segment.found)
        consequence = consequence_anywhere(judgement, segment.state, version, segment.recovered)
        yield audit_row(
            row, segment.name, row["base_offset"], size, judgement, consequence, segment.link
        )


def fold_transactions(version: Version) -> Transform:
    """Judge the ``.txnindex`` files of ``audit_segments``' rows with ``unfolded``.

    Gives: ``AUDITED``, one row for each file that is there or ought to be.
    """

    def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
        found = (row for batch in batches for row in batch.to_pylist())
        for _, rows in groupby(found, key=itemgetter(*_LOG)):
            yield from judge_log_transactions(rows, version)

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from to_batches(rows_of(batches), to_arrow_schema(AUDITED))

    def transform(audited: DataFrame) -> DataFrame:
        rows = by_keys(where_set(audited, "unfolded"), _LOG, order=(*_LOG, "base_offset"))
        return map_rows(rows, on_task, AUDITED)

    return transform
