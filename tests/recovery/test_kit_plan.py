"""From which segment on a kit reads a log, and which logs it leaves to the broker."""

from collections.abc import Iterable
from typing import Any

import pytest

from kafka_segments.files.folders import kinds
from kafka_segments.files.folders.listing_rows import Listed
from kafka_segments.files.folders.log_dir_folder import noted_offsets
from kafka_segments.kafka.text.checkpoints import EpochStart
from kafka_segments.verbs.change.recovery.kit.plan import LogPlan, plan_log
from kafka_segments.verbs.change.recovery.kit_manifest import KitState, LogKit

BASES = (0, 10, 20, 30)


def _plan(
    *,
    folder: str = "t-0",
    bases: Iterable[int] = BASES,
    point: int | None = None,
    log_start: int | None = None,
    without: Iterable[str] = (),
    with_names: Iterable[str] = (),
    unreadable: Iterable[int] = (),
    refused: Iterable[int] = (),
    others: Iterable[Listed] = (),
    is_clean: bool = False,
    topic_id: str | None = "AAAAAAAAAAAAAAAAAAAAAQ",
) -> LogPlan | LogKit:
    segments = [
        Listed(kinds.SEGMENT, "/logs", folder, base_offset=base, size_bytes=100, mtime_ns=base)
        for base in bases
    ]
    log = Listed(kinds.LOG, "/logs", folder, topic_id=topic_id, leader_epochs=[EpochStart(1, 0)])
    topic, _, partition = folder.rpartition("-")
    offsets: dict[str, Any] = {
        "topic": topic,
        "partition": int(partition) if partition.isdecimal() else 0,
        "recovery_point": point,
        "log_start_offset": log_start,
    }
    log_dir = Listed(
        kinds.LOG_DIR, "/logs", "", meta={"was_clean_shutdown": is_clean}, offsets=[offsets]
    )
    names = {f"{base:020d}{suffix}" for base in bases for suffix in (".index", ".snapshot")}
    return plan_log(
        [*segments, log, *others],
        log_dir,
        offsets=noted_offsets(log_dir),
        number=0,
        folder=f"/logs/{folder}",
        names=(names | set(with_names)) - set(without),
        has_state=lambda offset: offset not in unreadable,
        is_refused=lambda offset: offset in refused,
    )


def _read(plan: LogPlan | LogKit) -> tuple[list[int], int | None]:
    assert isinstance(plan, LogPlan), plan
    return [segment.base_offset for segment in plan.segments], plan.snapshot


@pytest.mark.parametrize(
    ("point", "read"),
    [
        (None, ([0, 10, 20, 30], None)),
        (0, ([0, 10, 20, 30], None)),
        (9, ([0, 10, 20, 30], None)),
        (10, ([10, 20, 30], 10)),
        (19, ([10, 20, 30], 10)),
        (30, ([30], 30)),
        (35, ([30], 30)),
    ],
)
def test_a_log_is_read_from_the_segment_with_the_recovery_point_on(
    point: int | None, read: tuple[list[int], int | None]
) -> None:
    assert _read(_plan(point=point)) == read


def test_a_point_below_the_first_segment_means_all_of_the_log() -> None:
    assert _read(_plan(bases=(10, 20), point=5)) == ([10, 20], 10)


def test_without_the_snapshot_the_reading_starts_at_the_next_older_one() -> None:
    assert _read(_plan(point=30, without=[f"{30:020d}.snapshot"])) == ([20, 30], 20)
    assert _read(_plan(point=30, unreadable=[30, 20])) == ([10, 20, 30], 10)
    assert _read(_plan(point=30, unreadable=BASES)) == ([0, 10, 20, 30], None)


def test_a_snapshot_at_or_below_the_log_start_does_not_count() -> None:
    assert _read(_plan(point=30, log_start=20, unreadable=[30])) == ([0, 10, 20, 30], None)


def test_a_segment_without_an_index_is_read_wherever_it_lies() -> None:
    assert _read(_plan(point=30, without=[f"{20:020d}.index"])) == ([20, 30], 20)


def test_a_segment_whose_transaction_index_a_broker_refuses_is_read_wherever_it_lies() -> None:
    with_names = [f"{base:020d}.txnindex" for base in (10, 20)]

    assert _read(_plan(point=30, with_names=with_names, refused=[0, 20])) == ([20, 30], 20)
    assert _read(_plan(point=30, with_names=with_names)) == ([30], 30)


@pytest.mark.parametrize(
    ("options", "state", "message"),
    [
        ({"is_clean": True}, KitState.LEFT, "stopped cleanly"),
        ({"folder": "__cluster_metadata-0"}, KitState.LEFT, "KRaft"),
        ({"folder": "t-0.1234567890abcdef-delete"}, KitState.LEFT, "-delete"),
        ({"bases": ()}, KitState.LEFT, "no segments"),
        ({"folder": "t-0.1234567890abcdef-future"}, KitState.REFUSED, "-future"),
        (
            {"folder": f"t-0.{'0' * 32}-stray", "bases": ()},
            KitState.REFUSED,
            "recovers it like any other log",
        ),
        ({"bases": (10, 20), "log_start": 5}, KitState.REFUSED, "tiered storage, or lost"),
        ({"topic_id": None}, KitState.REFUSED, "it has no partition.metadata"),
    ],
)
def test_what_is_left_to_the_broker_says_why(
    options: dict[str, Any], state: KitState, message: str
) -> None:
    plan = _plan(**options)

    assert isinstance(plan, LogKit)
    assert plan.state == state
    assert message in plan.message


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (Listed(kinds.LEFT_OVER, "/logs", "t-0", name="1.log.swap"), "unfinished compaction"),
        (Listed(kinds.UNRECOGNIZED, "/logs", "t-0", name="1.log", reason="20 digits"), "20 digits"),
        (Listed(kinds.LOG, "/logs", "t-0", reason="topic_id expected"), "topic_id expected"),
        (Listed(kinds.UNLISTED, "/logs", "t-0", reason="not permitted"), "cannot be listed: not"),
    ],
)
def test_a_folder_with_odd_files_is_refused(row: Listed, message: str) -> None:
    plan = _plan(others=[row])

    assert isinstance(plan, LogKit)
    assert plan.state == KitState.REFUSED
    assert message in plan.message


def test_what_a_broker_deletes_at_start_is_no_reason_to_refuse() -> None:
    others = [
        Listed(kinds.LEFT_OVER, "/logs", "t-0", name=f"{0:020d}.log.deleted"),
        Listed(kinds.UNRECOGNIZED, "/logs", "t-0", name=".x.kafka-segments-tmp", reason="ours"),
    ]

    assert _read(_plan(point=30, others=others)) == ([30], 30)


def test_index_files_are_made_of_the_segments_that_a_broker_recovers_alone() -> None:
    deep = _plan(point=30, without=[f"{30:020d}.snapshot", f"{20:020d}.snapshot"])
    lacking = _plan(point=30, without=[f"{10:020d}.index"])

    assert isinstance(deep, LogPlan)
    assert isinstance(lacking, LogPlan)
    assert (_read(deep), deep.recovered) == (([10, 20, 30], 10), {30})
    assert (_read(lacking), lacking.recovered) == (([10, 20, 30], 10), {10, 30})
