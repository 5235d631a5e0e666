"""Roll: decide over the tables, and keep the decisions as a table; or cut history anew."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from kafka_segments.engine.derived.as_built import with_cut_short
from kafka_segments.engine.derived.configs import with_topic_configs
from kafka_segments.engine.derived.first_look_only import refuse_first_looks
from kafka_segments.engine.derived.known_replicas import telling_left_over
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.tables.catalog import OFFSET_INDEX, ROLL_DECISIONS, SEGMENTS, TIME_INDEX
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.engine.tables.run_columns import stamp_of
from kafka_segments.verbs.judge.roll.decide.append import (
    only_present,
    with_append,
    with_built_interval,
)
from kafka_segments.verbs.judge.roll.decide.recut import compare_cuts
from kafka_segments.verbs.judge.roll.decide.rolls import decide_rolls
from kafka_segments.verbs.judge.roll.decide.rules import RollRules
from kafka_segments.verbs.judge.roll.tasks import with_index_entries

_OF_SEGMENTS = (
    *SEGMENT_KEYS,
    *("path", "size_bytes", "valid_bytes", "is_active", "vanished_at", "last_modified_ms"),
    *("next_offset", "first_batch_timestamp_ms", "max_timestamp_ms", "fingerprint"),
    *("index_entries", "time_index_entries", "batch_count"),
)
"""What is asked of a segment: each step of a decision costs time for each column there is."""


@dataclass(frozen=True)
class RollOptions:
    """What a decision depends on besides the tables. ``now_ms`` is the run's clock.

    Attributes:
        configs: the settings of topics and brokers.
        rules: the rules of a release, or of a text of KIP-33.
        append_bytes: size of the append that the decision is for.
        append_records: number of its records.
        append_timestamp_ms: its greatest timestamp; -1: it has none; None: now.
        opened_ms: when the broker opened the active segments; None: at their mtime.
    """

    configs: TopicConfigs
    rules: RollRules
    now_ms: int
    append_bytes: int = 16_384
    append_records: int = 1
    append_timestamp_ms: int | None = None
    opened_ms: int | None = None


def run_roll(warehouse: Warehouse, options: RollOptions, *, dry_run: bool) -> DataFrame:
    """Decide for every active segment of the warehouse; return rows of ``roll_decisions``.

    Raises:
        UsageError: the warehouse has no segments.
    """
    run_id = uuid.uuid4().hex
    append = with_append(
        now_ms=options.now_ms,
        size_bytes=options.append_bytes,
        records=options.append_records,
        timestamp_ms=options.append_timestamp_ms,
        opened_ms=options.opened_ms,
    )
    decided = (
        warehouse.read(SEGMENTS, _OF_SEGMENTS)
        .transform(only_present)
        .where("is_active")
        .transform(telling_left_over(warehouse))
        .transform(with_cut_short(warehouse))
        .transform(with_topic_configs(warehouse.spark, options.configs))
        .transform(with_built_interval)
        .transform(with_index_entries())
        .transform(append)
        .transform(decide_rolls(now_ms=options.now_ms, rules=options.rules))
        .withColumns(stamp_of(run_id, options.now_ms))
    )
    if dry_run:
        return decided
    # What is kept is returned: files that a broker writes to would be counted anew, differently.
    return warehouse.keep_run(ROLL_DECISIONS, decided, run_id)


def run_what_if(
    warehouse: Warehouse, options: RollOptions, grid: Sequence[Mapping[str, int]]
) -> DataFrame:
    """Cut the history of every log anew; return a row for each log and combination of settings.

    For a setting that a row of ``grid`` leaves out, the topic's own configuration holds.

    Raises:
        UsageError: the warehouse has no segments, or some are known by a first look alone.
    """
    present = warehouse.read(SEGMENTS).transform(only_present)
    refuse_first_looks(present, "where between its ends a batch begins")
    cut_anew = compare_cuts(
        offset_index=warehouse.read(OFFSET_INDEX),
        time_index=warehouse.read(TIME_INDEX),
        grid=grid,
    )
    return (
        present.transform(telling_left_over(warehouse))
        .transform(with_topic_configs(warehouse.spark, options.configs))
        .transform(cut_anew)
    )
