"""What is asked of a tiered log whose first offsets are on no disk that was read."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.derived.tier_fronts import COPY_FINISHED
from kafka_segments.engine.tables.catalog import (
    METADATA_CONFIGS,
    METADATA_PARTITIONS,
    REMOTE_SEGMENTS,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.text.moments import NAMED
from kafka_segments.verbs.find.failover.run import (
    FailoverOptions,
    RestoreOptions,
    run_failover,
    run_restore,
)
from kafka_segments.verbs.find.lag.run import LagOptions, run_lag
from kafka_segments.verbs.find.search.log_tables import LogChoice
from kafka_segments.verbs.find.search.run import SearchOptions, run_search
from support.logs.group_logs import batch, commit_key, commit_value, write_log
from support.logs.strategies import v2_batch
from support.spark.filled_tables import fill
from support.spark.stored_builds import build_few

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("few")]

NOW_MS = 1_800_000_000_000
FRONT = "offsets 0 to 29 lie in tiered storage, which is not read"
OF_TIER = "not known: the topic is tiered, and what its tier has is not read; ask a broker"


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Callable[..., Warehouse]:
    """A log of which the disk has offsets 30 and 31, and groups that have read up to 5 and 31."""
    logs, root = tmp_path / "logs", tmp_path / "warehouse"
    (logs / "t-0").mkdir(parents=True)
    data = v2_batch(30, [(1_000, None, b"x"), (2_000, None, b"y")], leader_epoch=0)
    (logs / "t-0" / f"{30:020d}.log").write_bytes(data)
    commits = ((commit_key(group), commit_value(at)) for group, at in (("behind", 5), ("near", 31)))
    write_log(logs, 0, (0, [batch(0, *commits)]))
    (logs / "log-start-offset-checkpoint").write_text("0\n1\nt 0 0\n")
    build_few(spark, str(logs), str(root), now_ms=NOW_MS, cluster="c")

    def made(*, is_tiered: bool | None, copied: tuple[int, int] | None = None) -> Warehouse:
        found = Warehouse(spark, str(root))
        if is_tiered is not None:
            of_topics = [
                {"cluster": "c", "topic": topic, "topic_id": topic}
                for topic in ("t", "__consumer_offsets")
            ]
            fill(found, METADATA_PARTITIONS, of_topics)
            setting = {"name": "remote.storage.enable", "value": str(is_tiered).lower()}
            of_topic = {"cluster": "c", "resource_type": "topic", "resource_name": "t"}
            fill(found, METADATA_CONFIGS, [of_topic | setting])
        if copied is not None:
            last, reaches = copied
            copy = {"cluster": "c", "topic": "t", "segment_id": "s", "state": COPY_FINISHED}
            holds = {"start_offset": 0, "end_offset": last, "max_timestamp_ms": reaches}
            fill(found, REMOTE_SEGMENTS, [{**copy, **holds}])
        return found

    return made


def _answers(tables: Warehouse, caches: ExitStack, *times: int) -> dict[str, tuple[Any, ...]]:
    moments = (*NAMED.items(), *((str(time), time) for time in times))
    asked = SearchOptions(LogChoice(topics=("t",)), (4, 3), moments)
    rows = run_search(tables, asked, caches).collect()
    names = ("kafka_offset", "true_offset", "problem")
    return {row["question"]: tuple(row[name] for name in names) for row in rows}


def test_a_search_does_not_take_the_disk_for_the_log(
    tables: Callable[..., Warehouse], caches: ExitStack
) -> None:
    assert _answers(tables(is_tiered=True), caches, 1_500, 9_000) == {
        "EARLIEST": (0, 0, None),
        "EARLIEST_LOCAL": (30, 30, None),
        "LATEST": (32, 32, None),
        "MAX_TIMESTAMP": (31, None, f"not known: {FRONT}"),
        "LATEST_TIERED": (None, None, OF_TIER),
        "EARLIEST_PENDING_UPLOAD": (None, None, OF_TIER),
        "1500": (None, None, f"not known: {FRONT}"),
        "9000": (None, None, f"not known: {FRONT}"),
    }


def test_an_answer_stays_where_all_copies_in_front_are_earlier(
    tables: Callable[..., Warehouse], caches: ExitStack
) -> None:
    found = _answers(tables(is_tiered=True, copied=(29, 1_400)), caches, 1_400, 1_401)

    assert found["1400"] == (None, None, f"not known: {FRONT}")
    assert found["1401"] == (31, 31, None)


def test_a_log_that_begins_behind_its_note_is_told_where_no_metadata_says_more(
    tables: Callable[..., Warehouse], caches: ExitStack
) -> None:
    _, _, untold = _answers(tables(is_tiered=None), caches, 1_500)["1500"]
    plain = _answers(tables(is_tiered=False), caches, 1_500)

    assert "notes that it begins at 0, and its first segment does at 30" in untold
    assert plain["1500"] == (31, 31, None)
    assert plain["EARLIEST"] == (30, 30, None)


def test_a_group_that_has_not_read_the_tier_has_lost_nothing(
    tables: Callable[..., Warehouse], caches: ExitStack
) -> None:
    rows = run_lag(tables(is_tiered=True), LagOptions(LogChoice(), NOW_MS), caches).collect()

    told = {row["group_id"]: row for row in rows}
    behind, near = told["behind"], told["near"]
    names = ("status", "offset_lag", "gone_offsets", "is_time_lag_least")
    assert tuple(behind[name] for name in names) == ("not readable", 27, None, True)
    assert behind["problem"] == f"unread records may be in what is missing: {FRONT}"
    assert tuple(near[name] for name in names) == ("behind", 1, 0, False)


def test_messages_in_the_tier_may_be_the_oldest_that_a_group_has_not_read(
    tables: Callable[..., Warehouse], caches: ExitStack
) -> None:
    found = tables(is_tiered=True, copied=(29, 900))
    plans = {}
    for group in ("behind", "near"):
        choice = LogChoice(topics=("t",))
        asked = FailoverOptions(choice, found.root, choice, group, 10, NOW_MS)
        (plans[group],) = run_failover(found, asked, caches).collect()

    assert plans["behind"]["to_offset"] is None
    assert FRONT in plans["behind"]["problem"]
    assert (plans["near"]["to_offset"], plans["near"]["problem"]) == (30, None)


def test_a_cut_is_not_known_where_a_later_record_may_be_in_the_tier(
    tables: Callable[..., Warehouse], caches: ExitStack
) -> None:
    found = tables(is_tiered=True, copied=(29, 1_400))

    def cut(at_ms: int) -> tuple[Any, ...]:
        asked = RestoreOptions(LogChoice(topics=("t",)), at_ms)
        (row,) = run_restore(found, asked, caches).collect()
        return row["cut_position"], row["problem"]

    assert cut(1_399) == (None, f"not known: {FRONT}")
    assert cut(1_400) == (0, None)
