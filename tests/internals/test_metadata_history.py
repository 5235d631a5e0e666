"""The fold of the metadata log, record by record, as Kafka's MetadataDelta replays it."""

from typing import Any

import pytest

from kafka_segments.kafka.messages.metadata_image import (
    BROKERS,
    CONFIGS,
    FEATURES,
    PARTITIONS,
    TOPICS,
)
from kafka_segments.verbs.find.internals.metadata.history import (
    PROBLEMS,
    HistoryRow,
    MetadataHistory,
    Point,
)

MIGRATING = "AAAAAAAAAAAAAAAAAAAAAA"
A, B = "aaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbb"
Record = tuple[str, dict[str, Any]]


def _topic(topic_id: str = A, name: str = "orders") -> Record:
    return "TopicRecord", {"name": name, "topicId": topic_id}


def _partition(topic_id: str = A, number: int = 0, **other: Any) -> Record:
    fields = {
        "partitionId": number,
        "topicId": topic_id,
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": 1,
        "leaderEpoch": 4,
        "partitionEpoch": 7,
        **other,
    }
    return "PartitionRecord", fields


def _change(topic_id: str = A, number: int = 0, **other: Any) -> Record:
    return "PartitionChangeRecord", {"partitionId": number, "topicId": topic_id, **other}


def _config(
    value: str | None, *, kind: int = 2, resource: str = "orders", name: str = "retention.ms"
) -> Record:
    fields = {"resourceType": kind, "resourceName": resource, "name": name, "value": value}
    return "ConfigRecord", fields


def _register(epoch: int = 9, **other: Any) -> Record:
    fields = {
        "brokerId": 1,
        "brokerEpoch": epoch,
        "incarnationId": B,
        "endPoints": [{"name": "PLAINTEXT", "host": "h", "port": 9092, "securityProtocol": 0}],
        "features": [],
        "rack": "r",
        **other,
    }
    return "RegisterBrokerRecord", fields


def _folded(*records: Record) -> list[HistoryRow]:
    """Fold records at offsets from 0 on, a second apart; rows in order of table and begin."""
    history, rows = MetadataHistory(), []
    for offset, (kind, value) in enumerate(records):
        rows += history.replay(kind, value, Point(offset, 1000 * offset))
    return sorted([*rows, *history.end()], key=lambda row: (row.table, row.since.offset))


def _held(rows: list[HistoryRow], table: str, *names: str) -> list[tuple[Any, ...]]:
    return [
        (
            *(row.values[name] for name in names),
            row.since.offset,
            None if row.until is None else row.until.offset,
        )
        for row in rows
        if row.table == table
    ]


def test_a_topic_holds_until_it_is_removed_and_so_do_its_partitions_and_configs() -> None:
    rows = _folded(
        _topic(),
        _partition(),
        _config("1"),
        _config("2", kind=4, resource="", name="log.retention.ms"),
        ("RemoveTopicRecord", {"topicId": A}),
        _topic(B),
    )

    assert _held(rows, TOPICS, "topic", "topic_id") == [("orders", A, 0, 4), ("orders", B, 5, None)]
    assert _held(rows, PARTITIONS, "partition") == [(0, 1, 4)]
    assert _held(rows, CONFIGS, "resource_type", "resource_name", "value") == [
        ("topic", "orders", "1", 2, 4),
        ("broker", "", "2", 3, None),
    ]


def test_a_change_of_a_partition_leaves_what_it_does_not_name() -> None:
    rows = _folded(
        _topic(),
        _partition(eligibleLeaderReplicas=[2], lastKnownElr=[3], leaderRecoveryState=1),
        _change(isr=[1]),
        _change(leader=-1, eligibleLeaderReplicas=[], leaderRecoveryState=0),
        _change(leader=2, replicas=[2, 3], directories=[A, B], lastKnownElr=[]),
        _change(addingReplicas=[4], removingReplicas=[3]),
    )
    states = [row.values for row in rows if row.table == PARTITIONS]

    columns = ("isr", "leader", "leader_epoch", "partition_epoch", "elr", "leader_recovery_state")
    assert [tuple(state[name] for name in columns) for state in states] == [
        ([1, 2, 3], 1, 4, 7, [2], "recovering"),
        ([1], 1, 4, 8, [2], "recovering"),
        ([1], -1, 5, 9, [], "recovered"),
        ([1], 2, 6, 10, [], "recovered"),
        ([1], 2, 6, 11, [], "recovered"),
    ]
    assert states[0]["directories"] == [MIGRATING] * 3
    assert [state["last_known_elr"] for state in states] == [[3], [3], [3], [], []]
    last = states[-1]
    assert (last["replicas"], last["directories"]) == ([2, 3], [A, B])
    assert (last["adding_replicas"], last["removing_replicas"]) == ([4], [3])


def test_epochs_wrap_as_javas_do() -> None:
    rows = _folded(
        _topic(), _partition(leaderEpoch=2**31 - 1, partitionEpoch=-1), _change(leader=2)
    )

    last = [row.values for row in rows if row.table == PARTITIONS][-1]
    assert (last["leader_epoch"], last["partition_epoch"]) == (-(2**31), 0)


def test_elrs_are_cleared_of_one_topic_or_of_all_and_that_is_a_change_of_the_partition() -> None:
    elr = {"eligibleLeaderReplicas": [2]}
    rows = _folded(
        _topic(),
        _topic(B, "other"),
        _partition(**elr),
        _partition(B, **elr),
        _partition(B, 1),
        ("ClearElrRecord", {"topicName": "orders"}),
        ("ClearElrRecord", {"topicName": ""}),
    )

    assert _held(rows, PARTITIONS, "topic", "elr", "partition_epoch") == [
        ("orders", [2], 7, 2, 5),
        ("other", [2], 7, 3, 6),
        ("other", [], 7, 4, None),
        ("orders", [], 8, 5, None),
        ("other", [], 8, 6, None),
    ]


def test_of_a_brokers_secret_each_new_value_is_a_row_without_the_value() -> None:
    name = "listener.name.x.ssl.key.password"
    values = ("a", "b", "b", None, "b")
    rows = _folded(*(_config(value, kind=4, resource="1", name=name) for value in values))

    assert _held(rows, CONFIGS, "name", "value") == [
        (name, "[hidden]", 0, 1),
        (name, "[hidden]", 1, 3),
        (name, "[hidden]", 4, None),
    ]
    of_topic = _folded(_topic(), _config("a", name="some.name"))
    assert _held(of_topic, CONFIGS, "value") == [("a", 1, None)]


def test_a_config_is_set_again_deleted_and_the_same_value_is_no_change() -> None:
    rows = _folded(_config("1"), _config("1"), _config("2"), _config(None), _config(None))

    assert _held(rows, CONFIGS, "value") == [("1", 0, 2), ("2", 2, 3)]


@pytest.mark.parametrize(
    ("number", "name"),
    [(2, "topic"), (4, "broker"), (8, "broker_logger"), (16, "client_metrics"), (32, "group")],
)
def test_resources_have_names_and_an_unknown_kind_its_number(number: int, name: str) -> None:
    rows = _folded(_config("1", kind=number), _config("1", kind=99))

    assert _held(rows, CONFIGS, "resource_type") == [(name, 0, None), ("99", 1, None)]


def test_a_broker_is_fenced_until_it_is_not_and_a_new_registration_fences_it_again() -> None:
    change = {"brokerId": 1, "brokerEpoch": 9}
    rows = _folded(
        _register(),
        ("BrokerRegistrationChangeRecord", {**change, "fenced": -1}),
        ("BrokerRegistrationChangeRecord", {**change, "inControlledShutdown": 1}),
        ("BrokerRegistrationChangeRecord", {**change, "fenced": 1, "logDirs": [A]}),
        _register(20, fenced=False, cordonedLogDirs=[A]),
        ("FenceBrokerRecord", {"id": 1, "epoch": 20}),
        ("UnfenceBrokerRecord", {"id": 1, "epoch": 20}),
        (
            "BrokerRegistrationChangeRecord",
            {"brokerId": 1, "brokerEpoch": 20, "cordonedLogDirs": []},
        ),
        ("UnregisterBrokerRecord", {"brokerId": 1, "brokerEpoch": 20}),
    )

    columns = ("broker_epoch", "is_fenced", "in_controlled_shutdown", "log_dirs")
    assert _held(rows, BROKERS, *columns, "cordoned_log_dirs") == [
        (9, True, False, [], [], 0, 1),
        (9, False, False, [], [], 1, 2),
        (9, False, True, [], [], 2, 3),
        (9, True, True, [A], [], 3, 4),
        (20, False, False, [], [A], 4, 5),
        (20, True, False, [], [A], 5, 6),
        (20, False, False, [], [A], 6, 7),
        (20, False, False, [], [], 7, 8),
    ]
    endpoint = {"name": "PLAINTEXT", "host": "h", "port": 9092, "security_protocol": 0}
    assert (rows[0].values["endpoints"], rows[0].values["rack"]) == ([endpoint], "r")


def test_a_feature_has_a_level_until_it_is_0_and_krafts_own_is_the_quorums() -> None:
    def level(name: str, number: int) -> Record:
        return "FeatureLevelRecord", {"name": name, "featureLevel": number}

    rows = _folded(level("group.version", 1), level("kraft.version", 1), level("group.version", 0))

    assert _held(rows, FEATURES, "name", "level") == [("group.version", 1, 0, 2)]


def test_a_transaction_is_applied_as_a_whole_at_its_end_or_never() -> None:
    rows = _folded(
        ("BeginTransactionRecord", {"name": "x"}),
        _topic(),
        _partition(),
        ("EndTransactionRecord", {}),
        ("BeginTransactionRecord", {"name": "y"}),
        _topic(B, "never"),
        ("AbortTransactionRecord", {"reason": "z"}),
        ("BeginTransactionRecord", {"name": "left open"}),
        _config("1"),
    )

    assert _held(rows, TOPICS, "topic") == [("orders", 3, None)]
    assert _held(rows, PARTITIONS, "partition") == [(0, 3, None)]
    assert _held(rows, CONFIGS) == []


def test_what_does_not_fit_is_told_and_changes_nothing() -> None:
    rows = _folded(
        _change(),
        _partition(B),
        ("RemoveTopicRecord", {"topicId": A}),
        ("ClearElrRecord", {"topicName": "none"}),
        ("FenceBrokerRecord", {"id": 1, "epoch": 1}),
        _register(9),
        ("UnfenceBrokerRecord", {"id": 1, "epoch": 8}),
        ("TopicRecord", {"name": "cut"}),
        ("NoOpRecord", {}),
    )

    assert [row.values["problem"] for row in rows if row.table == PROBLEMS] == [
        f"PartitionChangeRecord at offset 0 is not applied: partition 0 of topic {A} changes, and"
        " there is none",
        f"PartitionRecord at offset 1 is not applied: partition 0 of topic {B}: no such topic",
        f"RemoveTopicRecord at offset 2 is not applied: topic {A} is removed, and there is none",
        "ClearElrRecord at offset 3 is not applied: the ELRs of topic none are cleared, and there"
        " is none",
        "FenceBrokerRecord at offset 4 is not applied: broker 1 changes, and none is registered",
        "UnfenceBrokerRecord at offset 6 is not applied: broker 1 of epoch 8 changes, and it is"
        " registered with epoch 9",
        "TopicRecord at offset 7 is not applied: lacks 'topicId'",
    ]
    assert {row.table for row in rows} == {PROBLEMS, BROKERS}


def test_what_a_snapshot_has_is_known_from_its_end_and_goes_on_in_the_log() -> None:
    history = MetadataHistory()
    snapshot, later = Point(99, 5000, is_snapshot=True), Point(100, 6000)

    during = [*history.replay(*_config("1"), snapshot), *history.replay(*_topic(), snapshot)]
    ended = list(history.replay(*_config("2"), later))

    assert during == []
    assert [(row.since, row.until) for row in ended] == [(snapshot, later)]
    assert sorted((row.table, row.since) for row in history.end()) == [
        (CONFIGS, later),
        (TOPICS, snapshot),
    ]
