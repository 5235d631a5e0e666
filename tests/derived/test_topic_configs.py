"""Topic configs: levels, Kafka's parsing, what kafka-configs and server.properties print."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.derived.configs import KEYS, with_topic_configs
from kafka_segments.engine.derived.metadata_configs import ConfigAtOffset, MetadataConfigs
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.errors import CorruptTextError, UsageError
from kafka_segments.kafka.text.kafka_configs import parse_described_configs, parse_server_properties
from kafka_segments.kafka.tier.tiered_offsets import parse_tiered_offsets
from kafka_segments.settings import Settings, TopicConfig, settings_grid
from support.spark.rows_of import rows_of

Told = dict[str, tuple[Any, str]]
DESCRIBED = """\
Dynamic configs for topic orders are:
  retention.ms=86400000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=86400000,\
 STATIC_BROKER_CONFIG:log.retention.ms=5, DEFAULT_CONFIG:log.retention.hours=168}
  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=c}
  unclean.leader.election.enable=true sensitive=false synonyms={}
Dynamic configs for topic empty are:
Configs for topic 'old' are retention.ms=5,cleanup.policy=compact,delete,retention.bytes=-9

All configs for broker 3 are:
  log.retention.ms=null sensitive=false synonyms={}
  log.retention.minutes=3 sensitive=false synonyms={}
  log.retention.hours=168 sensitive=false synonyms={}
Default configs for brokers in the cluster are:
  log.retention.ms=7 sensitive=false synonyms={}
"""


@pytest.fixture
def file(tmp_path: Path):
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write


def _told(configs: TopicConfigs, topic: str, broker_id: int, *, cluster: str = "c") -> Told:
    """Give the value of each setting, and where it comes from, in words."""
    settings = configs.of(cluster).resolve(topic, broker_id)
    return {key: (setting.value, setting.origin) for key, setting in settings.items()}


def test_topics_brokers_and_the_clusters_defaults_are_read_as_kafka_configs_prints_them():
    found = parse_described_configs("f", DESCRIBED)

    assert found == [
        ("orders", None, {"retention_ms": "86400000", "cleanup_policy": "compact,delete"}, 1),
        ("empty", None, {}, 5),
        (
            "old",
            None,
            {"retention_ms": "5", "cleanup_policy": "compact,delete", "retention_bytes": "-9"},
            6,
        ),
        (None, 3, {"retention_ms": "180000"}, 8),
        (None, None, {"retention_ms": "7"}, 12),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f: no configs of a topic or broker, as `kafka-configs --describe` prints them"),
        ("  a=b\n", "f: 'a=b' is no line of `kafka-configs --describe`: 1"),
        ("Dynamic configs for topic t are:\nError: x\n", "f: 'Error: x' is no line of `kafka-"),
        ("Dynamic configs for broker x are:\n", "f: 'x' is no broker id (line 1)"),
        ("Configs for topic t are:\n  a.b=1\n  a.b=1\n  a.b=2\n", "f: a.b is 1 and 2 (line 4)"),
    ],
)
def test_what_kafka_configs_does_not_print_is_refused_by_line(text, message):
    with pytest.raises(CorruptTextError) as raised:
        parse_described_configs("f", text)

    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "configs"),
    [
        ("log.roll.hours=2", {"segment_ms": "7200000"}),
        ("log.roll.hours=2\nlog.roll.ms=5", {"segment_ms": "5"}),
        ("log.roll.jitter.hours=1", {"segment_jitter_ms": "3600000"}),
        (
            "log.segment.bytes=100\nlog.index.size.max.bytes=8",
            {"segment_bytes": "100", "segment_index_bytes": "8"},
        ),
    ],
)
def test_the_brokers_keys_of_rolling_become_the_topics(text, configs):
    assert parse_server_properties("f", text) == configs


@pytest.mark.parametrize(
    ("text", "retention_ms"),
    [
        ("log.retention.hours=1", "3600000"),
        ("log.retention.hours=1\nlog.retention.minutes=5", "300000"),
        ("log.retention.minutes=5\nlog.retention.ms= +9 ", "9"),
        ("log.retention.minutes=2147483647", "128849018820000"),
        ("log.retention.hours=-1", "-1"),
        ("log.retention.ms=-5", "-1"),
        ("retention.ms=5", None),
    ],
)
def test_the_smallest_unit_that_is_set_wins_in_server_properties(text, retention_ms):
    assert parse_server_properties("f", text).get("retention_ms") == retention_ms


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("log.retention.ms=0", "f: log.retention.ms is 0: -1 (unlimited) or 1 and more expected"),
        ("log.retention.hours=1.5", "f: log.retention.hours is '1.5': not a number of type INT"),
        (
            "log.retention.hours=99999999999",
            "f: log.retention.hours is '99999999999': not a number of type INT",
        ),
        (
            "log.retention.ms=\nlog.retention.hours=2",
            "f: log.retention.ms is '': not a number of type LONG",
        ),
        ("a=\\uZ", "f: Invalid \\u escape sequence"),
    ],
)
def test_a_retention_that_a_broker_refuses_at_start_is_refused(text, message):
    with pytest.raises(CorruptTextError) as raised:
        parse_server_properties("f", text)

    assert str(raised.value).startswith(message)


def test_the_levels_win_in_kafkas_order_and_each_value_knows_its_own(file):
    conf = file("c.toml", 'retention_bytes = 5\n[topics."orders"]\nretention_ms = 99\n')
    described = file("d", DESCRIBED)
    configs = TopicConfigs.load(
        Settings.load(conf, ["file.delete.delay.ms=1"]),
        topic_configs=[described],
        server_properties=file("s", "log.retention.ms=1\nlog.cleanup.policy=delete , compact"),
    )

    orders, other = _told(configs, "orders", 3), _told(configs, "other", 3)
    assert orders["retention_ms"] == (99, "topic: --conf, environment or --set")
    assert orders["cleanup_policy"] == ("compact,delete", f"topic: {described} (line 1)")
    assert other["retention_ms"] == (180_000, f"broker's dynamic: {described} (line 8)")
    other = _told(configs, "other", 1)
    assert other["retention_ms"] == (7, f"cluster-wide dynamic: {described} (line 12)")
    assert other["cleanup_policy"] == ("compact,delete", "server.properties")
    assert _told(configs, "old", 1)["retention_bytes"] == (-9, f"topic: {described} (line 6)")
    assert _told(configs, "empty", 1)["retention_bytes"][0] == 5
    assert _told(configs, "empty", 1)["local_retention_ms"] == (-2, "Kafka's default")


def _held(kind: str, resource: str, name: str, value: str, offset: int = 5) -> ConfigAtOffset:
    return ConfigAtOffset(kind, resource, name, value, offset, 1_000 * offset, False)


def test_configs_of_the_metadata_log_are_levels_with_their_offset_and_time():
    held = (
        _held("topic", "orders", "retention.ms", "99"),
        _held("topic", "orders", "unclean.leader.election.enable", "true"),
        _held("broker", "3", "log.retention.minutes", "3", 7),
        _held("broker", "3", "log.retention.hours", "1", 8),
        _held("broker", "", "log.retention.ms", "7", 9)._replace(is_from_snapshot=True),
        _held("broker", "", "log.cleaner.threads", "2"),
    )
    configs = TopicConfigs.load(Settings.load(None, []), metadata=[MetadataConfigs("c", held)])

    place = "metadata log, offset 5, since 1970-01-01 00:00:05.000 UTC"
    assert _told(configs, "orders", 3)["retention_ms"] == (99, f"topic: {place}")
    place = "metadata log, offset 7, since 1970-01-01 00:00:07.000 UTC"
    assert _told(configs, "x", 3)["retention_ms"] == (180_000, f"broker's dynamic: {place}")
    place = "metadata log, offset 9, before 1970-01-01 00:00:09.000 UTC"
    assert _told(configs, "x", 1)["retention_ms"] == (7, f"cluster-wide dynamic: {place}")
    assert configs.metadata["c"].counts() == "1 topics and 1 brokers and of the cluster"


def _two_clusters() -> TopicConfigs:
    """Settings of clusters a and b that differ at every level, given the metadata of both."""
    held = {
        cluster: (
            _held("topic", "orders", "retention.ms", f"1{number}"),
            _held("broker", "3", "log.retention.ms", f"2{number}"),
            _held("broker", "", "log.retention.ms", f"3{number}"),
            _held("broker", "", "log.segment.bytes", f"10{number}"),
        )
        for number, cluster in enumerate(("a", "b"))
    }
    metadata = [MetadataConfigs(cluster, configs) for cluster, configs in held.items()]
    return TopicConfigs.load(Settings.load(None, []), metadata=metadata)


def test_each_clusters_topics_and_brokers_take_what_its_own_metadata_log_says(
    spark: SparkSession,
) -> None:
    configs = _two_clusters()
    logs = [
        (cluster, topic, broker_id)
        for cluster in ("a", "b", "c", "")
        for topic in ("orders", "x", "__consumer_offsets")
        for broker_id in (3, 4)
    ]
    rows = rows_of(spark, logs, "cluster string, topic string, broker_id int")

    found = rows.transform(with_topic_configs(spark, configs)).collect()

    by_log = {(row["cluster"], row["topic"], row["broker_id"]): row for row in found}
    assert (len(found), by_log.keys()) == (len(logs), set(logs))
    for row in found:
        settings = configs.of(row["cluster"]).resolve(row["topic"], row["broker_id"])
        assert {key: row[key] for key in KEYS} == {
            key: setting.value for key, setting in settings.items()
        }
    values = {log: (row["retention_ms"], row["segment_bytes"]) for log, row in by_log.items()}
    assert [values[cluster, "orders", 3] for cluster in ("a", "b", "c")] == [
        (10, 100),
        (11, 101),
        (604_800_000, 1 << 30),
    ]
    assert [values["b", "x", broker_id] for broker_id in (3, 4)] == [(21, 101), (31, 101)]


def test_a_file_wins_of_the_topics_and_brokers_that_it_tells_of_and_of_no_others(file):
    described = file(
        "d",
        "Dynamic configs for topic orders are:\n  retention.bytes=5\n"
        "Dynamic configs for broker 3 are:\n",
    )
    held = (
        _held("topic", "orders", "retention.ms", "10"),
        _held("topic", "clicks", "retention.ms", "11"),
        _held("broker", "3", "log.retention.ms", "20"),
        _held("broker", "4", "log.retention.ms", "21"),
        _held("broker", "", "log.retention.ms", "30"),
    )
    metadata = [MetadataConfigs("c", held)]
    configs = TopicConfigs.load(
        Settings.load(None, []), topic_configs=[described], metadata=metadata
    )

    orders = _told(configs, "orders", 3)
    assert orders["retention_bytes"] == (5, f"topic: {described} (line 1)")
    assert orders["retention_ms"][0] == 30
    assert _told(configs, "clicks", 3)["retention_ms"][0] == 11
    assert _told(configs, "x", 4)["retention_ms"][0] == 21
    assert configs.of("another").topics == {"orders": {"retention_bytes": 5}}


def test_with_the_metadata_log_no_topic_has_what_kafka_sets_where_it_makes_its_own():
    without = TopicConfigs.load(Settings.load(None, []))
    with_log = TopicConfigs.load(Settings.load(None, []), metadata=[MetadataConfigs("c", ())])

    level = "as Kafka makes this topic"
    assert _told(without, "__consumer_offsets", 1)["cleanup_policy"] == ("compact", level)
    found = _told(with_log, "__consumer_offsets", 1)["cleanup_policy"]
    assert found == ("delete", "Kafka's default")


def test_a_value_in_the_metadata_log_that_kafka_refuses_is_named():
    held = (_held("topic", "orders", "retention.ms", "x"),)

    with pytest.raises(
        UsageError, match=r"metadata log of cluster c, topic orders: retention_ms is 'x'"
    ):
        TopicConfigs.load(Settings.load(None, []), metadata=[MetadataConfigs("c", held)])


def test_a_value_that_kafka_refuses_is_named_with_its_topic(file):
    described = file("d", "Dynamic configs for topic t are:\n  cleanup.policy=Delete\n")

    with pytest.raises(UsageError) as raised:
        TopicConfigs.load(Settings.load(None, []), topic_configs=[described])

    assert str(raised.value) == (
        f"{described}, topic t: cleanup_policy is 'Delete':"
        " compact, delete, both with a comma, or nothing expected"
    )


def _topic(name: str, *entries: str) -> str:
    return "\n  ".join((f"Dynamic configs for topic {name} are:", *entries, "\n"))


def test_several_files_are_read_as_one(file):
    configs = TopicConfigs.load(
        Settings.load(None, []),
        topic_configs=[
            file("a", _topic("t", "retention.ms=5", "cleanup.policy=delete,compact") + DESCRIBED),
            file("b", _topic("t", "cleanup.policy=compact, delete", "retention.bytes=6")),
            file("c", "\nDynamic configs for broker 4 are:\n  log.retention.ms=8\n" + _topic("u")),
        ],
    )

    assert configs.others.topics["t"] == {
        "retention_ms": 5,
        "cleanup_policy": "compact,delete",
        "retention_bytes": 6,
    }
    assert configs.others.of_brokers() == {3: {"retention_ms": 180_000}, 4: {"retention_ms": 8}}
    assert configs.described.counts() == "5 topics and 2 brokers and of the cluster"


@pytest.mark.parametrize("count", [1, 2], ids=["in one file", "in two files"])
@pytest.mark.parametrize(
    ("header", "key", "whose"),
    [
        ("Dynamic configs for topic t are:", "retention.ms", "topic t"),
        ("Dynamic configs for broker 7 are:", "log.retention.ms", "broker 7"),
        ("Default configs for brokers in the cluster are:", "log.retention.ms", "the cluster"),
    ],
)
def test_a_setting_with_two_values_is_refused_with_both_places(file, count, header, key, whose):
    texts = ["\n".join((header, f"  {key}={value}", "")) for value in (50, 60)]
    files = (
        [file("a", "".join(texts))] if count == 1 else [file("a", texts[0]), file("b", texts[1])]
    )

    with pytest.raises(UsageError) as raised:
        TopicConfigs.load(Settings.load(None, []), topic_configs=files)

    second = f"{files[0]} (line 3)" if count == 1 else f"{files[1]} (line 1)"
    assert str(raised.value) == (
        f"{whose}: retention.ms is 50 in {files[0]} (line 1) and 60 in {second}:"
        " give --topic-configs only the file that holds"
    )


def test_kafkas_own_topics_are_as_kafka_makes_them_where_no_file_tells(file):
    conf = file("c.toml", '[topics."__transaction_state"]\nsegment_bytes = 14\n')
    settings = Settings.load(conf, ["cleanup.policy=delete", "retention.ms=1"])
    told = file("d", _topic("__consumer_offsets", "compression.type=producer"))

    untold, with_file = (TopicConfigs.load(settings, topic_configs=files) for files in ([], [told]))

    def policy(configs: TopicConfigs, topic: str) -> tuple[str, str]:
        return _told(configs, topic, 1)["cleanup_policy"]

    assert policy(untold, "__consumer_offsets") == ("compact", "as Kafka makes this topic")
    assert policy(with_file, "__consumer_offsets") == ("delete", "--conf, environment or --set")
    assert policy(with_file, "__transaction_state") == ("compact", "as Kafka makes this topic")
    assert untold.others.of_topics()["__transaction_state"] == {
        "cleanup_policy": "compact",
        "segment_bytes": 14,
    }
    for topic in ("__share_group_state", "__remote_log_metadata"):
        assert _told(untold, topic, 1)["retention_ms"] == (-1, "as Kafka makes this topic")


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("retention_ms", " +5 ", 5),
        ("retention_bytes", "-9", -9),
        ("cleanup_policy", "", ""),
        ("cleanup_policy", "delete,delete", "delete"),
        ("cleanup_policy", " delete , compact ", "compact,delete"),
        ("remote_storage_enable", "TRUE", True),
    ],
)
def test_values_are_read_as_kafka_reads_them(key, text, value):
    assert getattr(TopicConfig.model_validate({key: text}), key) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("retention_ms", "-2"),
        ("retention_ms", "1_000"),
        ("retention_ms", "1.0"),
        ("retention_ms", "9223372036854775808"),
        ("local_retention_ms", "-3"),
        ("file_delete_delay_ms", "-1"),
        ("cleanup_policy", "delete,"),
        ("remote_storage_enable", "yes"),
    ],
)
def test_values_that_kafka_refuses_are_refused(key, text):
    with pytest.raises(ValueError, match=key):
        TopicConfig.model_validate({key: text})


def test_several_values_and_keys_make_a_grid():
    assert settings_grid([]) == []
    assert settings_grid(["retention.ms=1,2", "retention_bytes=-1", "retention_ms=3"]) == [
        {"retention_ms": 1, "retention_bytes": -1},
        {"retention_ms": 2, "retention_bytes": -1},
        {"retention_ms": 3, "retention_bytes": -1},
    ]
    assert settings_grid(["retention_ms=1,2,1", "retention.ms=2"]) == [
        {"retention_ms": 1},
        {"retention_ms": 2},
    ]
    assert settings_grid(["cleanup.policy=compact,delete"]) == [
        {"cleanup_policy": "compact,delete"}
    ]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["retention_ms"], "--what-if retention_ms: key=value expected"),
        (["segment_bytes=1"], "unknown setting segment_bytes"),
        (["retention_ms=1,"], "retention_ms is '': not a number"),
        (["retention_ms=" + ",".join(map(str, range(1001)))], "--what-if: 1001 combinations"),
    ],
)
def test_a_grid_that_cannot_be_meant_is_refused(pairs, message):
    with pytest.raises(UsageError, match=message):
        settings_grid(pairs)


def test_the_highest_offset_in_remote_storage_is_read_as_kafka_get_offsets_prints_it():
    assert parse_tiered_offsets("f", "orders:0:40\na:b:1:-1\norders:2:\norders:0:41\n") == [
        ("orders", 0, 41),
        ("a:b", 1, -1),
    ]
    with pytest.raises(CorruptTextError, match=r"'orders 0 1': topic:partition:offset .*line 1"):
        parse_tiered_offsets("f", "orders 0 1\n")
