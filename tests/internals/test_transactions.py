"""Which open transactions hang: logs held against the coordinator's records, made by hand."""

import json
import shlex
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.run import InternalsOptions, run_internals
from kafka_segments.verbs.find.internals.transactions.decide.state_logs import (
    hidden_lines,
    sum_up_replicas,
    unread_lines,
)
from kafka_segments.verbs.find.internals.transactions.decide.transactions import (
    ask_for_first,
    coordinators_say,
    decide_transactions,
    garbled_ids,
    shell_word,
    with_cleanup_policy,
    with_first_times,
    with_log_doubts,
    with_producers,
    with_waiting_bytes,
)
from kafka_segments.verbs.find.internals.transactions.run import (
    TransactionsOptions,
    run_transactions,
)
from kafka_segments.verbs.find.search.log_tables import LogChoice
from support.model.plain_decoder import plain_records
from support.spark.rows_of import rows_of
from support.spark.stored_builds import build

pytestmark = pytest.mark.spark

NOW_MS = 1_700_000_100_000
START_MS = NOW_MS - 50_000
FIRST_MS = START_MS - 7
LOG = ("c", 1, "/d")
ONGOING, PREPARE_COMMIT, COMPLETE_ABORT = 1, 2, 5
KEYS = "cluster string, broker_id int, log_dir string, topic string, partition int"
Opened = tuple[str, int, int, int, int]


def _opened(spark: SparkSession, rows: list[Opened]) -> Any:
    """Make open transactions: topic, partition, producer id, epoch, first offset."""
    segments = spark.createDataFrame(
        [
            (*LOG, topic, partition, base, 100, [(producer, epoch + base, START_MS + 1 + base)])
            for topic, partition, producer, epoch, _ in rows
            for base in (0, 1)
        ],
        f"{KEYS}, base_offset long, log_end_offset long,"
        " producers array<struct<producer_id: long, epoch: long, timestamp_ms: long>>",
    )
    opened = [
        (*LOG, topic, partition, producer, first, FIRST_MS, 1, 50, None)
        for topic, partition, producer, _, first in rows
    ]
    columns = (
        f"{KEYS}, producer_id long, first_offset long, first_ms long, base_offset long,"
        " first_position long, log_doubt string"
    )
    files = [
        (*LOG, "orders", partition, base, valid, size, base == 2)
        for partition in range(8)
        for base, valid, size in ((0, 900, 900), (1, 200, 200), (2, 70, 90))
    ]
    sizes = f"{KEYS}, base_offset long, valid_bytes long, size_bytes long, is_active boolean"
    return (
        rows_of(spark, opened, columns)
        .transform(with_producers(segments))
        .transform(with_waiting_bytes(rows_of(spark, files, sizes)))
        .transform(with_cleanup_policy(*_metadata(spark)))
    )


def _metadata(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Give the topic, and the default of its cluster, which is of no other cluster."""
    configs = [
        ("c", "broker", "", "log.cleanup.policy", "compact"),
        ("d", "topic", "orders", "cleanup.policy", "delete"),
        ("c", "topic", "orders", "retention.ms", "1"),
    ]
    columns = "cluster string, resource_type string, resource_name string, name string,"
    return (
        rows_of(spark, [("c", "orders")], "cluster string, topic string"),
        rows_of(spark, configs, f"{columns} value string"),
    )


def _records(
    spark: SparkSession, brokers: dict[int, list[tuple[int, str, dict[str, Any] | str | None]]]
) -> Any:
    """Make the coordinator's log on each broker: offset, transactional id, what its value has.

    In place of a value, why it cannot be decoded.
    """
    values = [
        (
            *("c", broker, "/d", "__transaction_state", 0, offset, 0, "TransactionLog"),
            json.dumps({"transactionalId": name}),
            json.dumps(_value(**value)) if isinstance(value, dict) else None,
            value is None,
            value if isinstance(value, str) else None,
        )
        for broker, rows in brokers.items()
        for offset, name, value in rows
    ]
    columns = "offset long, leader_epoch int, kind string, key_json string, value_json string,"
    return rows_of(spark, values, f"{KEYS}, {columns} is_tombstone boolean, problem string")


def _value(
    producer: int, state: int, partitions: Sequence[int] = (), timeout: int = 60_000
) -> dict[str, Any]:
    return {
        "producerId": producer,
        "producerEpoch": 5,
        "transactionTimeoutMs": timeout,
        "transactionStatus": state,
        "transactionPartitions": [{"topic": "orders", "partitionIds": list(partitions)}],
        "transactionStartTimestampMs": START_MS,
    }


def _judged(spark: SparkSession, *partitions: tuple[int, int | None, int]) -> DataFrame:
    """Give what was read of partitions of the coordinator's log: number, unread until, how new."""
    columns = "cluster string, state_partition int, unread string, unread_until long, seen_ms long"
    rows = [
        ("c", number, None if until is None else "why", until, seen)
        for number, until, seen in partitions
    ]
    return rows_of(spark, rows, columns)


def test_an_id_whose_last_record_cannot_be_decoded_leaves_others_known(spark: SparkSession) -> None:
    """It may name any producer that no other id names."""
    opened = _opened(
        spark, [("orders", n, producer, 4, 1) for n, producer in enumerate((10, 11, 12))]
    )
    named = {"producer": 11, "state": COMPLETE_ABORT, "partitions": []}
    on = {"producer": 10, "state": ONGOING, "partitions": [0]}
    records = _records(
        spark, {1: [(0, "named", named), (1, "on", "cut"), (2, "on", on), (3, "on", "cut off")]}
    )
    (garbled,) = records.transform(garbled_ids()).collect()
    of_log = rows_of(
        spark,
        [("c", 0, garbled["garbled"], 0, FIRST_MS)],
        "cluster string, state_partition int, unread string, unread_until long, seen_ms long",
    )

    rows = opened.transform(
        decide_transactions(records.transform(coordinators_say()), of_log, now_ms=NOW_MS)
    ).collect()

    found = {row["producer_id"]: (row["status"], row["problem"]) for row in rows}
    assert garbled["garbled"] == "the record at offset 3 tells nothing: cut off"
    assert found == {
        10: ("not known", "not known: the last record of its id tells nothing: cut off"),
        11: ("hanging", None),
        12: ("not known", garbled["garbled"]),
    }


def test_an_id_with_another_record_in_another_copy_leaves_others_known(
    spark: SparkSession,
) -> None:
    opened = _opened(
        spark, [("orders", n, producer, 4, 1) for n, producer in enumerate((10, 11, 12, 13))]
    )
    values = [
        {"producer": producer, "state": ONGOING, "partitions": [number]}
        for number, producer in enumerate((10, 11, 12))
    ]
    log = [(number, f"id-{number}", value) for number, value in enumerate(values)]
    records = _records(spark, {1: [*log, (3, "id-0", values[0])]})
    why = "other records at an offset"
    at = [(0, "id-0"), (1, "id-1"), (1, "other")]
    keys = rows_of(
        spark,
        [
            ("c", 1, "/d", "__transaction_state", 0, offset, 0, "TransactionLog", key, None, why)
            for offset, name in at
            for key in (json.dumps({"transactionalId": name}),)
        ],
        f"{KEYS}, offset long, leader_epoch int, kind string, key_json string, key binary,"
        " contradicted string",
    )
    (garbled,) = records.transform(garbled_ids(keys=keys)).collect()
    judged = _judged(spark, (0, None, FIRST_MS))

    rows = opened.transform(
        decide_transactions(
            records.transform(coordinators_say(keys=keys)), judged, now_ms=START_MS + 1
        )
    ).collect()

    found = {row["producer_id"]: (row["status"], row["problem"]) for row in rows}
    assert garbled["garbled"] == f"the record at offset 1 tells nothing: {why}"
    assert found == {
        10: ("ongoing", None),
        11: ("not known", f"not known: the last record of its id tells nothing: {why}"),
        12: ("ongoing", None),
        13: ("hanging", None),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("partitions", "known"),
    [
        ([(0, None, FIRST_MS), (1, None, 0)], {"named": "hanging", "on": "ongoing"}),
        ([(0, None, FIRST_MS), (1, None, FIRST_MS)], None),
        ([(0, None, FIRST_MS - 1), (1, None, FIRST_MS)], {"on": "ongoing"}),
        ([(0, None, FIRST_MS), (1, 1, FIRST_MS)], {"named": "hanging", "on": "ongoing"}),
        ([(0, 1, FIRST_MS), (1, None, FIRST_MS)], {"named": "hanging"}),
        ([(0, 2, FIRST_MS), (1, None, FIRST_MS)], {}),
        ([], {}),
    ],
)
def test_what_was_not_read_of_the_coordinators_log_is_not_known(
    spark: SparkSession, partitions: list[Any], known: dict[str, str] | None
) -> None:
    opened = _opened(
        spark, [("orders", n, producer, 4, 1) for n, producer in enumerate((10, 11, 12))]
    )
    says = [("on", ONGOING, 10, [0]), ("named", COMPLETE_ABORT, 11, [])]
    log = [
        (offset, name, {"producer": producer, "state": state, "partitions": of})
        for offset, (name, state, producer, of) in enumerate(says)
    ]
    says_all = _records(spark, {1: log}).transform(coordinators_say())

    rows = opened.transform(
        decide_transactions(says_all, _judged(spark, *partitions), now_ms=NOW_MS)
    ).collect()

    names = {10: "on", 11: "named", 12: "not named"}
    all_known = {"on": "ongoing", "named": "hanging", "not named": "hanging"}
    expected = all_known if known is None else known
    for row in rows:
        status = expected.get(names[row["producer_id"]], "not known")
        assert row["status"] == status
        assert (row["command"] is not None) == (status == "hanging")
        assert (row["problem"] is not None) == (status == "not known")
    assert len(rows) == len(names)


@pytest.mark.parametrize(
    ("lost", "start", "doubt", "garbled", "why", "until"),
    [
        (None, 0, None, None, None, None),
        (None, 0, None, "cut off", "cut off", 0),
        ((7, "a gap"), 0, None, None, "records are missing in it: a gap", 7),
        (None, 4, None, None, "its first segments are missing: ", 4),
        ((7, "a gap"), 4, None, None, "records are missing in it: a gap", 7),
        ((7, "a gap"), 4, "not known: cut", "cut off", "not known: cut", 2**63 - 1),
    ],
)
def test_a_coordinators_log_tells_what_lies_behind_all_that_was_not_read(
    spark: SparkSession,
    lost: tuple[int, str] | None,
    start: int,
    doubt: str | None,
    garbled: str | None,
    why: str | None,
    until: int | None,
) -> None:
    log = (*LOG, "__transaction_state", 0)
    columns = f"{KEYS}, log_start_offset long, log_end_offset long, high_watermark long,"
    columns += " doubt string, lost STRUCT<until: BIGINT, why: STRING>"
    files = rows_of(spark, [(*log, 70_000)], f"{KEYS}, last_modified_ms long")

    replicas = rows_of(spark, [(*log, start, 9, 9, doubt, lost)], columns)
    of_ids = rows_of(spark, [("c", 0, garbled)], "cluster string, partition int, garbled string")
    (row,) = replicas.transform(sum_up_replicas(files, of_ids)).collect()

    assert (row["unread"] or "").startswith(why or "") and (row["unread"] is None) == (why is None)
    assert (row["unread_until"], row["seen_ms"]) == (until, 70_000)


def test_the_first_record_of_a_transaction_is_asked_of_its_segment(spark: SparkSession) -> None:
    columns = f"{KEYS}, base_offset long, first_offset long, first_position long"
    opened = [(*LOG, "t", 0, base, base + 7, 70) for base in (0, 10)]
    files = f"{KEYS}, base_offset long, path string, valid_bytes long"
    files += ", first_batch_timestamp_ms long, max_timestamp_ms long, other int"
    segments = rows_of(spark, [(*LOG, "t", 0, 10, "/d/t-0/10.log", 900, None, None, 1)], files)

    asked = rows_of(spark, opened, columns).transform(ask_for_first(segments))

    names = ("path", "start_position", "valid_bytes", "least_timestamp_ms", "least_offset")
    assert sorted(map(tuple, asked.select("base_offset", *names).collect())) == [
        (0, None, 70, None, -(2**63), 7),
        (10, "/d/t-0/10.log", 70, 900, -(2**63), 17),
    ]
    assert "other" not in asked.columns


def test_a_transaction_began_at_the_record_that_is_there_still(spark: SparkSession) -> None:
    found = rows_of(
        spark,
        [
            (1, 5, 5, 100, 5, None),
            (2, 5, 6, 100, 5, None),
            (3, 5, 6, 100, 6, None),
            (4, 5, None, None, None, "/p: gone"),
        ],
        "n int, first_offset long, found_offset long, found_timestamp_ms long,"
        " found_batch_offset long, problem string",
    ).withColumn("path", F.lit("/p"))

    rows = found.transform(with_first_times).orderBy("n").collect()

    assert [row["first_ms"] for row in rows] == [100, None, None, None]
    why = "not known: where it began was not found: /p: "
    expected = [None, None, f"{why}it no longer has offset 5", f"{why}gone"]
    assert [row["first_doubt"] for row in rows] == expected


@pytest.mark.slow
def test_a_transaction_hangs_that_no_coordinator_will_end(spark: SparkSession) -> None:
    opened = _opened(
        spark,
        [
            ("orders", 0, 10, 4, 40),
            ("orders", 0, 11, 4, 30),
            ("orders", 1, 12, 4, 20),
            ("orders", 1, 13, 4, 21),
            ("orders", 2, 14, 4, 22),
            ("orders", 3, 15, 6, 23),
            ("orders", 4, 16, 4, 24),
            ("orders", 5, 17, 4, 25),
            ("orders", 6, 18, 4, 26),
            ("orders", 7, 19, 4, 27),
        ],
    )
    says = [
        ("on", {"producer": 10, "state": ONGOING, "partitions": [0]}),
        ("late", {"producer": 11, "state": ONGOING, "partitions": [0], "timeout": 49_999}),
        ("ending", {"producer": 12, "state": PREPARE_COMMIT, "partitions": [0, 1]}),
        ("elsewhere", {"producer": 13, "state": ONGOING, "partitions": [0]}),
        ("done", {"producer": 14, "state": ONGOING, "partitions": [2]}),
        ("done", {"producer": 14, "state": COMPLETE_ABORT}),
        ("fenced", {"producer": 15, "state": ONGOING, "partitions": [3]}),
        ("expired", {"producer": 16, "state": ONGOING, "partitions": [4]}),
        ("expired", None),
        ("rotated", {"producer": 18, "state": ONGOING, "partitions": [6]}),
        ("rotated", {"producer": 28, "state": ONGOING, "partitions": [6]}),
    ]
    log = [(offset, name, value) for offset, (name, value) in enumerate(says, start=1)]
    # The tombstone of "cleaned" is gone from broker 2; broker 1 fell behind before it came.
    behind = [(0, "cleaned", {"producer": 17, "state": ONGOING, "partitions": [5]}), *log[:5]]
    records = _records(spark, {1: behind, 2: log, 3: behind[:3]})

    found = opened.transform(
        decide_transactions(
            records.transform(coordinators_say()),
            _judged(spark, (0, None, FIRST_MS)),
            now_ms=NOW_MS,
        )
    ).orderBy("producer_id")

    rows = found.collect()
    names = (
        *("producer_id", "transactional_id", "state", "is_forgotten"),
        *("status", "since_ms", "is_first"),
    )
    assert [_some(row, *names) for row in rows] == [
        (10, "on", "Ongoing", False, "ongoing", START_MS, False),
        (11, "late", "Ongoing", False, "overdue", START_MS, True),
        (12, "ending", "PrepareCommit", False, "ending", START_MS, True),
        (13, "elsewhere", "Ongoing", False, "hanging", FIRST_MS, False),
        (14, "done", "CompleteAbort", False, "hanging", FIRST_MS, True),
        (15, "fenced", "Ongoing", False, "hanging", FIRST_MS, True),
        (16, "expired", "Ongoing", True, "hanging", FIRST_MS, True),
        (17, "cleaned", "Ongoing", True, "hanging", FIRST_MS, True),
        (18, "rotated", "Ongoing", True, "hanging", FIRST_MS, True),
        (19, None, None, False, "hanging", FIRST_MS, True),
    ]
    assert {row["last_ms"] for row in rows} == {START_MS + 2}
    assert rows[0]["held_offsets"] == 60
    assert {_some(row, "held_bytes", "uncleaned_bytes", "cleanup_policy") for row in rows} == {
        (200 - 50 + 70, 200, "compact")
    }
    assert rows[0]["command"] is None
    assert rows[6]["command"] == (
        "kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic orders --partition 4"
        " --start-offset 24"
    )


def test_a_marker_may_be_among_lost_records_behind_its_transaction(spark: SparkSession) -> None:
    place = "STRUCT<until: BIGINT, why: STRING>"
    lost = {"until": 20, "why": "offsets 5 to 19 are in no segment"}
    replicas = [
        (*LOG, "orders", 0, None, lost),
        (*LOG, "orders", 1, None, None),
        (*LOG, "orders", 2, "not known: it is cut", None),
    ]
    places = [(number, at) for number in range(3) for at in (4, 20)]
    opened = [
        (*LOG, "orders", number, 0, at, "gone" if number < 2 else None) for number, at in places
    ]

    found = (
        rows_of(spark, opened, f"{KEYS}, producer_id long, first_offset long, first_doubt string")
        .transform(
            with_log_doubts(rows_of(spark, replicas, f"{KEYS}, log_doubt string, lost {place}"))
        )
        .orderBy("partition", "first_offset")
        .collect()
    )

    why = "not known: its marker may be in what is missing: offsets 5 to 19 are in no segment"
    cut = "not known: it is cut"
    assert [row["log_doubt"] for row in found] == [why, "gone", "gone", "gone", cut, cut]


def test_logs_that_do_not_tell_all_transactions_are_told_by_their_reason() -> None:
    logs = [
        {"cluster": "c", "topic": "orders", "partition": number, "why": f"not known: {why}"}
        for number, why in [(2, "cut"), (1, "cut"), (0, "damaged")]
    ]

    more = "transactions that are open there may be missing here"
    assert hidden_lines(logs) == [
        f"not known: orders-0: damaged: {more}",
        f"not known: orders-1, orders-2: cut: {more}",
    ]
    assert hidden_lines([]) == []


def test_a_name_that_no_topic_has_is_one_word_for_a_shell(spark: SparkSession) -> None:
    names = ["orders.v2-x_1", "x;reboot", "it's $(y)", "ends\n"]

    rows = rows_of(spark, [(name,) for name in names], "name string")

    told = [row[0] for row in rows.select(shell_word(F.col("name"))).collect()]
    assert told[0] == names[0]
    assert [shlex.split(word) for word in told] == [[name] for name in names]


def test_partitions_of_the_coordinators_log_that_were_not_read_are_told_by_their_reason() -> None:
    gone, cut = "no log of it was read: add it", "its first segments are missing: add them"
    doubt = f"not known: {cut}"
    rows = [
        {"cluster": "c", "state_partition": number, "unread": reason}
        for number, reason in [(n, gone) for n in range(20, 10, -1)] + [(0, None), (1, doubt)]
    ]
    for row in rows:
        if row["unread"] is not None:
            row["unread"] = (
                f"not known: __transaction_state-{row['state_partition']}: {row['unread']}"
            )

    told = unread_lines(rows)

    first = ", ".join(f"__transaction_state-{number}" for number in range(11, 19))
    assert told == [
        f"not known: __transaction_state-1: {cut}",
        f"not known: {first} and 2 more: {gone}",
    ]
    other = unread_lines([*rows, {"cluster": "d", "state_partition": 0, "unread": None}])
    assert other == [f"cluster c: {line}" for line in told]


@pytest.mark.parametrize(
    ("topic", "broker", "configs", "policy"),
    [
        ("orders", 1, {}, "delete"),
        ("orders", 1, {("broker", ""): "compact"}, "compact"),
        ("orders", 1, {("broker", ""): "compact", ("broker", "1"): "delete"}, "delete"),
        ("orders", 2, {("broker", ""): "compact", ("broker", "1"): "delete"}, "compact"),
        ("orders", 1, {("broker", "1"): "delete", ("topic", "orders"): "compact"}, "compact"),
        ("not-there", 1, {("broker", ""): "compact"}, None),
    ],
)
def test_the_cleanup_policy_is_that_of_the_nearest_level(
    spark: SparkSession,
    topic: str,
    broker: int,
    configs: dict[tuple[str, str], str],
    policy: str | None,
) -> None:
    names = {"topic": "cleanup.policy", "broker": "log.cleanup.policy"}
    rows = [("c", kind, whose, names[kind], value) for (kind, whose), value in configs.items()]
    held = rows_of(
        spark,
        rows,
        "cluster string, resource_type string, resource_name string, name string, value string",
    )
    topics = rows_of(spark, [("c", "orders")], "cluster string, topic string")
    opened = rows_of(spark, [("c", topic, broker)], "cluster string, topic string, broker_id int")

    (found,) = opened.transform(with_cleanup_policy(topics, held)).collect()

    assert found["cleanup_policy"] == policy


def _some(row: Row, *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_clusters_disks_tell_of_open_transactions_what_admin_did(
    spark: SparkSession, cluster: Path, tmp_path: Path
) -> None:
    warehouse, disks = str(tmp_path / "warehouse"), str(tmp_path / "disks")
    others = ("*-delete", "careful-*", "bold-*", "again-*", "made-*", "tiered*", "objects")
    internal = ("__consumer_*", "__remote_*", "__share_*")
    unneeded = shutil.ignore_patterns(*others, *internal)
    shutil.copytree(cluster / "disks", disks, ignore=unneeded)
    build(spark, disks, warehouse, index_dir=str(tmp_path / "indexes"))
    origin = Origin((disks,), ("__transaction_state", "__cluster_metadata"))
    now_ms = int((cluster / "answers" / "asked_ms.json").read_text())

    with ExitStack() as caches:
        tables, options = Warehouse(spark, warehouse), TransactionsOptions(LogChoice(), now_ms)
        run_internals(tables, InternalsOptions(origin), caches)
        found = run_transactions(tables, options, caches).collect()
        for log in tmp_path.glob("disks/node-*/*/orders-2/*.log"):
            log.unlink()
        without = run_transactions(tables, options, caches).collect()

    keys = ("topic", "partition", "producer_id", "producer_epoch")
    producers = json.loads((cluster / "answers" / "producers.json").read_text())
    assert sorted(_some(row, *keys, "first_offset") for row in found) == sorted(
        (*(producer[key] for key in keys), producer["transaction_start_offset"])
        for producer in producers
        if producer["transaction_start_offset"] is not None
    )
    told = {_some(row, "transactional_id", "state", "is_forgotten", "status") for row in found}
    assert told == {
        ("left-open", "Ongoing", False, "ongoing"),
        ("forgotten-transaction", "Ongoing", True, "hanging"),
    }
    described = json.loads((cluster / "answers" / "transactions.json").read_text())
    starts = {row["transactional_id"]: row["start_ms"] for row in described}
    assert {row["since_ms"] for row in found if row["status"] == "ongoing"} == {starts["left-open"]}
    (hanging,) = [row for row in found if row["status"] == "hanging"]
    (log,) = (cluster / "disks" / "node-1").glob("*/orders-2/*.log")
    (first,) = [record for record in plain_records(log.read_bytes()) if record.offset == 49]
    assert hanging["since_ms"] == first.timestamp
    assert hanging["held_bytes"] == log.stat().st_size - first.batch_position
    assert {_some(row, "topic", "cleanup_policy", "uncleaned_bytes") for row in found} == {
        ("orders", "delete", None),
        ("clicks", "compact", 0),
    }
    (gone,) = [row for row in without if row["producer_id"] == hanging["producer_id"]]
    assert gone["problem"].startswith("not known: where it began was not found: ")
    nothing = {"since_ms": None, "status": "not known", "command": None, "problem": gone["problem"]}
    assert gone.asDict() == {**hanging.asDict(), **nothing}
    assert hanging["command"].endswith("--topic orders --partition 2 --start-offset 49")
