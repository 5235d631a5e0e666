"""What stands before Kafka 4: which obstacle each finding is, and which of them block."""

from pyspark.sql import DataFrame, SparkSession

from kafka_segments.engine.sources.list import LISTED
from kafka_segments.files.folders import kinds
from kafka_segments.verbs.change.migrate.decide import obstacles
from kafka_segments.verbs.change.migrate.decide.listing import segments_of_listing, with_topic_ids
from support.spark.rows_of import frame, rows_of


def _codes(found: DataFrame) -> dict[str, tuple[bool, int, str]]:
    rows = found.transform(obstacles.explained).collect()
    codes = {row["code"]: (row["is_blocking"], row["count"], row["example"]) for row in rows}
    assert len(codes) == len(rows)
    assert all(row["obstacle"] and row["action"] for row in rows)
    return codes


def test_blocking_is_what_no_broker_of_4_starts_with_or_serves() -> None:
    assert {code for code, found in obstacles.OBSTACLES.items() if found.is_blocking} == {
        "offset_overflow", "no_topic_id",
        "lost_log", "refused_name", "old_protocol", "zookeeper_setting",
    }  # fmt: skip


def test_settings_are_told_by_their_key_and_release(spark: SparkSession) -> None:
    protocol = "inter.broker.protocol.version"
    cases = {
        ("zookeeper.connect", "zk:2181"): ("zookeeper_setting", True),
        (protocol, "3.2-IV0"): ("old_protocol", True),
        (protocol, "3.3"): ("gone_setting", False),
        (protocol, "3.10"): ("gone_setting", False),
        (protocol, "4.0-IV1"): ("gone_setting", False),
        (protocol, "latest"): ("old_protocol", True),
        ("log.message.format.version", "0.10"): ("gone_setting", False),
    }
    settings = rows_of(
        spark,
        [("c", 7, None, key, value) for key, value in cases],
        "cluster string, broker_id int, topic string, key string, value string",
    )

    rows = obstacles.obstacles_of_settings(settings).transform(obstacles.explained).collect()

    found = {row["example"]: (row["code"], row["is_blocking"]) for row in rows}
    assert found == {f"{key}={value}": case for (key, value), case in cases.items()}
    assert {(row["cluster"], row["broker_id"], row["count"]) for row in rows} == {("c", 7, 1)}


def test_logs_lack_an_id_or_epochs_where_their_files_were_read(spark: SparkSession) -> None:
    logs = frame(
        spark,
        "path string, folder_state string, topic_id string, problem string,"
        " leader_epochs array<struct<epoch: int, start_offset: long>>",
        {"path": "/whole", "folder_state": "live", "topic_id": "x", "leader_epochs": []},
        {"path": "/bare", "folder_state": "live"},
        {"path": "/moved", "folder_state": "future"},
        {"path": "/shut", "folder_state": "live", "problem": "permission denied"},
    )

    assert _codes(obstacles.obstacles_of_logs(logs)) == {
        "no_topic_id": (True, 1, "/bare"),
        "no_leader_epochs": (False, 1, "/bare"),
        "future_folder": (False, 1, "/moved"),
        "unreadable_metadata": (False, 1, "/shut"),
    }


def test_log_directories_tell_how_their_broker_ran_and_stopped(spark: SparkSession) -> None:
    log_dirs = rows_of(
        spark,
        [
            ("c", 1, "/sound", 1, True),
            ("c", 2, "/zookeeper", 0, True),
            ("c", 3, "/bare", None, True),
            ("c", 4, "/killed", 1, False),
        ],
        "cluster string, broker_id int, log_dir string, meta_version int,"
        " was_clean_shutdown boolean",
    )

    assert _codes(obstacles.obstacles_of_log_dirs(log_dirs)) == {
        "zookeeper_mode": (False, 1, "/zookeeper"),
        "no_meta_properties": (False, 1, "/bare"),
        "unclean_shutdown": (False, 1, "/killed"),
    }


def test_files_are_summed_up_by_what_a_broker_does_with_them(spark: SparkSession) -> None:
    files = rows_of(
        spark,
        [
            ("c", 1, "/b", 5, "a broker would not start"),
            ("c", 1, "/a", 7, "a broker would not start"),
            ("c", 1, "/d", 1, "the folder is marked -delete"),
            ("c", 1, "/e", 1, "left over from a compaction"),
            ("c", 1, "/f", 1, "no name of a segment"),
            ("c", 1, "/t-0", None, f"{kinds.NO_SEGMENT}, but it had records"),
        ],
        "cluster string, broker_id int, path string, size_bytes long, reason string",
    )

    found = obstacles.obstacles_of_files(files)

    assert _codes(found) == {
        "refused_name": (True, 2, "/a"),
        "marked_folder": (False, 1, "/d"),
        "leftover_file": (False, 1, "/e"),
        "lost_log": (True, 1, "/t-0"),
    }
    assert {row["code"]: row["bytes"] for row in found.collect()}["refused_name"] == 12


def test_a_log_starts_where_its_checkpoint_says_and_else_at_0(spark: SparkSession) -> None:
    def listed(**values: object) -> tuple[object, ...]:
        return tuple(values.get(name) for name in LISTED.fieldNames())

    offsets = {"topic": "t", "partition": 0, "log_start_offset": 7}
    rows = spark.createDataFrame(
        [
            listed(kind=kinds.LOG_DIR, log_dir="/d", offsets=[offsets], meta={
                "was_clean_shutdown": True}),
            listed(kind=kinds.LOG_DIR, log_dir="/e", offsets=[], meta={}),
            *(
                listed(kind=kinds.SEGMENT, source="/s", relative_path=path, log_dir=log_dir,
                       topic="t", partition=partition, base_offset=0)
                for path, log_dir, partition in (("a", "/d", 0), ("b", "/d", 1), ("c", "/e", 0))
            ),
            listed(kind=kinds.LOG, source="/s", relative_path="b", topic_id="own"),
        ],
        LISTED,
    )  # fmt: skip
    ids = rows_of(spark, [("t", "given")], "topic string, given_topic_id string")

    segments = rows.transform(segments_of_listing).transform(with_topic_ids(ids, ["topic"]))
    found = segments.orderBy("relative_path").collect()

    names = ("log_start_offset", "was_clean_shutdown", "own_topic_id", "topic_id")
    assert [tuple(row[name] for name in names) for row in found] == [
        (7, True, None, "given"),
        (0, True, "own", None),
        (0, False, None, "given"),
    ]
