"""The lag of share groups: by hand, and as Kafka's Admin listed it for a cluster that lived."""

import json
import random
from collections import Counter, defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.run import InternalsOptions, run_internals
from kafka_segments.verbs.find.lag.decide.share import (
    decide_share_lag,
    decide_share_states,
    with_log_ends,
    with_topic_names,
)
from support.kafka.cluster_disks import metadata_rows
from support.logs.internal_rows import internal_frame, rows_of_log
from support.spark.rows_of import rows_of
from support.spark.stored_builds import build
from support.verbs.figures import read_figures

pytestmark = pytest.mark.spark

SHARES = "__share_group_state"
MOMENTS = 6
COLUMNS = (
    "cluster string, broker_id int, log_dir string, topic string, partition int, offset long,"
    " timestamp_ms long, leader_epoch int, kind string, key_json string, value_json string,"
    " is_tombstone boolean, problem string, base_offset long, row long, file string,"
    " is_active boolean"
)
STATE = ("start_offset", "delivery_complete_count", "state_offset", "is_known")
Record = tuple[int, str, int, dict[str, int] | None]


def snapshot(offset: int, partition: int, start: int, count: int | None = None) -> Record:
    """Make a snapshot of a state; a count of None is one that is not written."""
    return offset, "ShareSnapshot", partition, _value(start, count)


def update(offset: int, partition: int, start: int, count: int | None = None) -> Record:
    """Make an update of a state."""
    return offset, "ShareUpdate", partition, _value(start, count)


def _value(start: int, count: int | None) -> dict[str, int]:
    done = {} if count is None else {"deliveryCompleteCount": count}
    return {"snapshotEpoch": 0, "startOffset": start, **done}


def rows(records: list[Record], *, broker_id: int = 1) -> list[tuple[Any, ...]]:
    return [
        (
            *("c", broker_id, "/d", SHARES, 0, offset, 1_000 * offset, 0, kind),
            json.dumps({"groupId": "g", "topicId": "T", "partition": partition}),
            None if value is None else json.dumps(value),
            value is None,
            *(None, 0, offset, "f", False),
        )
        for offset, kind, partition, value in records
    ]


LOG = [
    snapshot(1, 0, 5, 0),
    update(2, 0, -1, 3),
    update(3, 0, 9, 1),
    snapshot(4, 1, -1),
    snapshot(5, 2, 4, 0),
    (6, "ShareSnapshot", 2, None),
    snapshot(7, 0, 11, 2),
    update(8, 0, -1, 4),
    snapshot(9, 3, 1, 1),
]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (8, {0: (11, 4, 8, True), 1: (None, None, 4, True), 3: (None, None, None, False)}),
        (3, {0: (9, 1, 3, True), **dict.fromkeys((1, 2, 3), (None, None, None, False))}),
        (2, {0: (5, 3, 2, True), **dict.fromkeys((1, 2, 3), (None, None, None, False))}),
        (5, {0: (9, 1, 3, True), 1: (None, None, 4, True), 2: (4, 0, 5, True)}),
    ],
)
def test_a_state_is_its_last_snapshot_and_the_updates_behind_it(
    spark: SparkSession, at: int, expected: dict[int, tuple[Any, ...]]
) -> None:
    behind = [*LOG[:1], snapshot(2, 0, 99, 99)]  # a replica that does not reach so far
    records = rows_of(spark, [*rows(LOG), *rows(behind, broker_id=2)], COLUMNS)

    found = records.transform(decide_share_states(at_ms=1_000 * at)).collect()

    states = {row["partition"]: tuple(row[name] for name in STATE) for row in found}
    assert states == {**expected, **({} if at == 8 else {3: (None, None, None, False)})}


def test_a_record_that_cannot_be_decoded_leaves_its_own_state_in_doubt(spark: SparkSession) -> None:
    log = [snapshot(1, 0, 5, 0), snapshot(2, 1, 5), snapshot(3, 2, 5), snapshot(4, 2, 6)]
    garbled = [(5, "ShareSnapshot", 0), (6, "ShareUpdate", 1), (3, "ShareUpdate", 2)]
    bad = [(*row[:-5], "cut off", *row[-4:]) for row in rows([(*one, {}) for one in garbled])]

    found = rows_of(spark, [*rows(log), *bad], COLUMNS).transform(
        decide_share_states(at_ms=1_000_000)
    )

    doubts = {row["partition"]: row["state_doubt"] for row in found.collect()}
    why = "not known: a record of it tells nothing: cut off"
    assert doubts == {0: why, 1: why, 2: None}


def test_a_state_with_another_record_in_another_copy_is_not_known(spark: SparkSession) -> None:
    log = [snapshot(1, 0, 5), snapshot(2, 1, 5), snapshot(3, 2, 5), update(4, 2, 6, 0)]
    log += [snapshot(5, 3, 5), snapshot(6, 1, 6)]
    why = "other records at an offset"
    keys = rows_of(
        spark,
        [
            (*row[:10], None, why)
            for row in rows([update(2, 1, 4, 0), update(4, 2, 7, 0), snapshot(5, 4, 5)])
        ],
        f"{COLUMNS.partition(', value_json')[0]}, key binary, contradicted string",
    )

    found = rows_of(spark, rows(log), COLUMNS).transform(
        decide_share_states(at_ms=1_000_000, keys=keys)
    )

    doubts = {row["partition"]: row["state_doubt"] for row in found.collect()}
    told = f"not known: a record of it tells nothing: {why}"
    assert doubts == {0: None, 1: None, 2: told, 3: told, 4: told}


def test_a_state_that_only_another_copy_has_is_not_known_where_records_are_lost(
    spark: SparkSession,
) -> None:
    own = [snapshot(3, 1, 5), (8, "ShareSnapshot", 2, None), (1, "ShareSnapshot", 3, None)]
    own.append(snapshot(9, 4, 7))
    other = [snapshot(2, 0, 5), snapshot(2, 2, 4), snapshot(2, 5, 4), snapshot(2, 4, 4)]
    other.append((4, "ShareSnapshot", 5, None))
    columns = "cluster string, broker_id int, log_dir string, topic string, partition int"
    lost = rows_of(
        spark,
        [("c", 1, "/d", SHARES, 0, (7, "a gap"))],
        f"{columns}, lost STRUCT<until: BIGINT, why: STRING>",
    )
    others = rows_of(spark, rows(other, broker_id=2), COLUMNS)
    records = rows_of(spark, rows(own), COLUMNS).unionByName(others)

    found = records.transform(
        decide_share_states(at_ms=1_000_000, lost=lost, others=others)
    ).collect()

    doubts = {row["partition"]: row["state_doubt"] for row in found}
    why = "not known: a later record may be in what is missing of __share_group_state-0: a gap"
    assert doubts == {0: why, 1: why, 3: why, 4: None}


def test_topics_are_named_by_their_ids_in_their_cluster(spark: SparkSession) -> None:
    names = [
        ("c", "A", "orders"),
        ("c", "A", "orders"),
        ("c", "B", "paid"),
        ("d", "C", "elsewhere"),
        ("c", None, "old"),
    ]
    known = rows_of(spark, names, "cluster string, topic_id string, topic string")
    states = rows_of(
        spark,
        [("c", "A", 1), ("c", "B", 2), ("c", "C", 3), ("d", "C", 4), ("c", None, 5)],
        "cluster string, topic_id string, n int",
    )

    found = states.transform(with_topic_names(known)).orderBy("n").collect()

    assert [row["topic"] for row in found] == ["orders", "paid", "C", "elsewhere", None]


def test_the_end_of_a_topic_that_was_made_anew_is_not_told(spark: SparkSession) -> None:
    ends = [
        ("c", "same", 0, "A", 3, 10),
        ("c", "unknown", 0, None, 3, 10),
        ("c", "anew", 0, "B", 3, 10),
        ("c", "same", 1, "A", 3, 11),
        ("d", "elsewhere", 0, "A", 3, 10),
    ]
    logs = rows_of(
        spark,
        ends,
        "cluster string, topic string, partition int, log_topic_id string, log_start_offset long,"
        " end_offset long",
    )
    states = [("c", topic, "A", 0) for topic in ("same", "unknown", "anew", "elsewhere")]
    columns = "cluster string, topic string, topic_id string, partition int"

    found = rows_of(spark, states, columns).transform(with_log_ends(logs)).collect()

    assert {row["topic"]: (row["log_start_offset"], row["end_offset"]) for row in found} == {
        "same": (3, 10),
        "unknown": (3, 10),
        "anew": (3, None),
        "elsewhere": (None, None),
    }
    assert len(found) == len(states)


def test_what_a_group_is_done_with_is_no_lag(spark: SparkSession) -> None:
    given = [
        (True, 5, 2, 0, 10, "behind", 3),
        (True, 5, 5, 0, 10, "up to date", 0),
        (True, 12, 0, 0, 10, "ahead of the log's end", -2),
        (True, 5, 0, 7, 10, "unread records deleted", 5),
        (True, 5, 0, None, None, "log not in the tables", None),
        (True, None, None, 0, 10, "nothing read yet", None),
        (True, 5, None, 0, 10, "nothing read yet", None),
        (False, None, None, 0, 10, "no state left from that time", None),
    ]
    states = rows_of(
        spark,
        [
            *(("c", "g", "t", n, *row[:5], 7, 7_000, None, None) for n, row in enumerate(given)),
            ("c", "g", "t", 8, *given[0][:5], 7, 7_000, "why", None),
            ("c", "g", "t", 9, *given[0][:5], 7, 7_000, None, "why"),
        ],
        "cluster string, group_id string, topic string, partition int, is_known boolean,"
        " start_offset long, delivery_complete_count long, log_start_offset long,"
        " end_offset long, state_offset long, state_ms long, state_doubt string, doubt string",
    )

    found = states.transform(decide_share_lag).orderBy("partition").collect()

    assert [(row["status"], row["offset_lag"]) for row in found] == [
        *(row[5:] for row in given),
        ("not known", None),
        ("not known", None),
    ]
    assert [row["problem"] for row in found] == [None] * len(given) + ["why", "why"]


def listed(cluster: Path, name: str) -> dict[tuple[str, int], int]:
    """Give the offset or the lag that Admin listed of the share group of the cluster that lived."""
    rows = json.loads((cluster / "answers" / "group_offsets.json").read_text())
    return {
        (row["topic"], row["partition"]): row[name]
        for row in rows
        if row["group"] == "sharers" and row[name] is not None
    }


@pytest.fixture(scope="module")
def of_cluster(cluster: Path) -> list[dict[str, Any]]:
    """The records of all replicas of the share coordinator's log."""
    return [
        row
        for folder in sorted((cluster / "disks").glob(f"node-*/*/{SHARES}-*"))
        for row in rows_of_log(folder, broker_id=int(folder.parts[-3].removeprefix("node-")))
    ]


def test_start_offsets_and_lags_of_the_cluster_are_those_that_admin_listed(
    spark: SparkSession, cluster: Path, of_cluster: list[dict[str, Any]]
) -> None:
    held, _ = metadata_rows(cluster / "disks" / "node-1" / "a" / f"{METADATA_TOPIC}-0")
    names = {
        row.values["topic_id"]: row.values["topic"]
        for row in held
        if row.table == "metadata_topics" and row.until is None
    }
    ends = json.loads((cluster / "answers" / "end_offsets.json").read_text())
    logs = spark.createDataFrame(
        [
            (topic_id, name, int(number), 0, ends[f"{name}-{number}"], None)
            for topic_id, name in names.items()
            for number in range(5)
            if f"{name}-{number}" in ends
        ],
        "topic_id string, topic string, partition int, log_start_offset long, end_offset long,"
        " doubt string",
    )

    states = internal_frame(spark, of_cluster).transform(decide_share_states(at_ms=2**60))
    found = states.join(logs, ["topic_id", "partition"]).transform(decide_share_lag).collect()

    ours = {(row["topic"], row["partition"]): row for row in found if row["group_id"] == "sharers"}
    told = {key: row for key, row in ours.items() if row["offset_lag"] is not None}
    assert len(told) > 2
    assert {key: row["start_offset"] for key, row in told.items()} == listed(cluster, "offset")
    assert {key: row["offset_lag"] for key, row in told.items()} == listed(cluster, "lag")


def states_by_a_plain_loop(
    records: list[dict[str, Any]], at_ms: int
) -> dict[tuple[str, str, int], tuple[int | None, int | None, int]]:
    """Fold the longest replica of each partition as the coordinator replays it, up to a moment."""
    replicas = defaultdict(list)
    for row in records:
        replicas[row["partition"], row["broker_id"], row["log_dir"]].append(row)
    furthest: dict[int, tuple[Any, ...]] = {}
    for (number, *place), rows in replicas.items():
        end = max(row["offset"] for row in rows if row["offset"] is not None)
        furthest[number] = max(furthest.get(number, (-1,)), (end, *place))
    states: dict[tuple[str, str, int], tuple[int | None, int | None, int]] = {}
    for number, (_, *place) in furthest.items():
        log = (row for row in replicas[number, *place] if row["kind"] is not None)
        for row in log:
            if row["timestamp_ms"] > at_ms or not row["kind"].startswith("Share"):
                continue
            key = tuple(json.loads(row["key_json"]).values())
            if row["is_tombstone"]:
                states.pop(key, None)
                continue
            value = json.loads(row["value_json"])
            start, count = value["startOffset"], value.get("deliveryCompleteCount", -1)
            before = states.get(key, (None, None, 0))[0]
            if row["kind"] == "ShareSnapshot":
                before = None
            states[key] = (
                before if start == -1 else start,
                None if count == -1 else count,
                row["offset"],
            )
    return states


@pytest.mark.slow
def test_states_as_of_any_moment_are_those_of_a_replay_up_to_it(
    spark: SparkSession, of_cluster: list[dict[str, Any]], seed: int
) -> None:
    records = internal_frame(spark, of_cluster).persist()
    moments = sorted({row["timestamp_ms"] for row in of_cluster})
    for at_ms in sorted(random.Random(seed).sample(moments, MOMENTS)):
        found = records.transform(decide_share_states(at_ms=at_ms)).where("is_known").collect()

        assert {
            (row["group_id"], row["topic_id"], row["partition"]): (
                row["start_offset"],
                row["delivery_complete_count"],
                row["state_offset"],
            )
            for row in found
        } == states_by_a_plain_loop(of_cluster, at_ms)
    records.unpersist()


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_the_verb_measures_share_groups_by_their_logs(
    spark: SparkSession, cluster: Path, tmp_path: Path
) -> None:
    warehouse, disks = str(tmp_path / "warehouse"), str(cluster / "disks")
    build(spark, disks, warehouse, index_dir=str(tmp_path / "indexes"))
    with ExitStack() as caches:
        run_internals(
            Warehouse(spark, warehouse), InternalsOptions(Origin((disks,), (SHARES,))), caches
        )
    ends = json.loads((cluster / "answers" / "end_offsets.json").read_text())

    def lag(*options: str) -> Any:
        given = ["lag", "--share-groups", "--warehouse", warehouse, *options]
        return CliRunner().invoke(cli, given, catch_exceptions=False)

    done = lag("--output", "json", "--group", "sharers")
    found = {
        (row["topic"], row["partition"]): row
        for row in map(json.loads, done.stdout.splitlines())
        if row["start_offset"] is not None
    }
    told = lag("--topic", "orders")
    nothing = lag("--at", "2020-01-01T00:00:00Z", "--output", "json")
    figures = read_figures(lag("--group", "sharers", "--output", "prometheus").stdout)

    assert {key: row["start_offset"] for key, row in found.items()} == listed(cluster, "offset")
    assert {key: row["offset_lag"] for key, row in found.items()} == listed(cluster, "lag")
    for (topic, partition), row in found.items():
        assert row["end_offset"] == ends[f"{topic}-{partition}"]
    behind: Counter[str] = Counter()
    for (topic, _), lag_of_one in listed(cluster, "lag").items():
        behind[topic] += lag_of_one
    sums = {labels[-1]: value for labels, value in figures["share_lag_offsets"].items()}
    assert sums == behind
    assert {labels[-1] for labels in figures["exit_status"]} == {"lag --share-groups"}
    assert "share partitions, " in told.stderr
    assert nothing.exit_code == 1
    statuses = {json.loads(line)["status"] for line in nothing.stdout.splitlines()}
    assert statuses == {"no state left from that time"}
