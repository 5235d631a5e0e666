"""What a topic's cleanup.policy says of what copies lack: of files, metadata logs, Kafka itself."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.derived.metadata_in_tables import NoMetadataError
from kafka_segments.engine.tables import catalog
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.copies.divergence.policies.cleanup import CleanupPolicies
from kafka_segments.verbs.copies.divergence.policies.options import load_policies
from support.logs.log_copies import Batch, rolled
from support.logs.log_folders import write_copies
from support.logs.metadata_logs import config, log_bytes, log_dir, partition, topic, uuid_text
from support.spark.filled_tables import fill

CLUSTER, NOW_MS = "c", 1_000
DELETED = "Dynamic configs for topic t are:\n  retention.ms=3\n"
COMPACTED = "Dynamic configs for topic t are:\n  cleanup.policy=compact,delete\n"
KEYS = 10
LOG = [Batch(at, at, 0, ((at, b"k%d" % (at % KEYS), b"v"),)) for at in range(2 * KEYS)]
LACKS = (2, 5)
"""Their keys come again, as 12 and 15, and none comes again in front of them."""


def _file(folder: Path, text: str) -> Path:
    path = folder / "configs.txt"
    path.write_text(text, "utf-8")
    return path


def _told(policies: CleanupPolicies, name: str, *, cluster: str | None = CLUSTER) -> bool | None:
    return policies.is_compact(topic=name, topic_id=None, cluster=cluster, node_id=1)


def _load(
    *files: Path, warehouse: Path | None = None, server: Path | None = None
) -> CleanupPolicies:
    root = None if warehouse is None else str(warehouse)
    return load_policies(
        topic_configs=files, server_properties=server, warehouse=root, now_ms=NOW_MS
    )


def test_of_kafkas_own_topics_it_is_known_without_files() -> None:
    for policies in (CleanupPolicies.of_nothing(), _load()):
        assert _told(policies, "__consumer_offsets", cluster=None) is True
        assert _told(policies, "__transaction_state") is True
        assert _told(policies, "__share_group_state") is False
        assert _told(policies, "__cluster_metadata") is False
        assert _told(policies, "t") is None


def test_files_tell_of_the_topics_that_they_name(tmp_path: Path) -> None:
    static = tmp_path / "server.properties"
    static.write_text("log.cleanup.policy=compact\n")

    assert _told(_load(_file(tmp_path, COMPACTED)), "t", cluster=None) is True
    deleted = _file(tmp_path, DELETED)
    assert [_told(_load(deleted), name) for name in ("t", "u")] == [False, None]
    assert [_told(_load(deleted, server=static), name) for name in ("t", "u")] == [True, None]


def _config(name: str, value: str, of: str, held: tuple[int, int | None], **more: Any) -> dict:
    first, until = held
    row = {"cluster": CLUSTER, "resource_type": "topic", "resource_name": of, "name": name}
    row |= {"value": value, "from_offset": first, "from_ms": first, "is_from_snapshot": False}
    return {**row, "until_offset": until, "until_ms": until, **more}


def _topic(name: str, number: int, *, at: int = 10, cluster: str = CLUSTER) -> dict:
    row = {"cluster": cluster, "topic": name, "topic_id": uuid_text(number)}
    return {**row, "from_offset": at, "from_ms": at, "is_from_snapshot": False}


def _warehouse(spark: SparkSession, folder: Path, topics: list[dict], configs: list[dict]) -> Path:
    warehouse = Warehouse(spark, str(folder))
    fill(warehouse, catalog.METADATA_TOPICS, topics)
    fill(warehouse, catalog.METADATA_CONFIGS, configs)
    return folder


def test_the_metadata_log_tells_of_all_topics_of_its_cluster_and_what_they_once_were(
    spark: SparkSession, tmp_path: Path
) -> None:
    policy = "cleanup.policy"
    topics = [_topic(name, at) for at, name in enumerate(["never", "now", "once", "anew", "later"])]
    configs = [
        _config("retention.ms", "5", "never", (11, None)),
        _config(policy, "compact,delete", "now", (11, None)),
        _config(policy, "compact", "once", (11, 20)),
        _config(policy, "delete", "once", (20, None)),
        _config(policy, "compact", "anew", (3, 8)),
        _config(policy, "compact", "later", (NOW_MS + 1, None)),
    ]
    warehouse = _warehouse(spark, tmp_path / "tables", topics, configs)

    policies = _load(warehouse=warehouse)

    told = {name: _told(policies, name) for name in ("never", "now", "once", "anew", "later", "no")}
    assert told == {
        **{"never": False, "now": True, "once": True, "anew": False},
        **{"later": False, "no": None},
    }
    of_others = [_told(policies, "never", cluster=other) for other in (None, "", "d")]
    assert of_others == [None, None, None]
    with_file = _load(_file(tmp_path, DELETED.replace("topic t", "topic now")), warehouse=warehouse)
    assert _told(with_file, "now") is True


def test_a_log_is_of_the_topic_that_has_its_id(spark: SparkSession, tmp_path: Path) -> None:
    topics = [_topic("t", 1), _topic("u", 2)]
    configs = [_config("cleanup.policy", "compact", "u", (11, None))]
    policies = _load(warehouse=_warehouse(spark, tmp_path, topics, configs))

    def told(name: str, number: int) -> bool | None:
        topic_id = uuid_text(number)
        return policies.is_compact(topic=name, topic_id=topic_id, cluster=CLUSTER, node_id=1)

    assert [told("t", 1), told("renamed", 2), told("t", 3)] == [False, True, None]


def test_what_brokers_once_set_counts_for_all_topics(spark: SparkSession, tmp_path: Path) -> None:
    of_brokers = {"resource_type": "broker", "cluster": CLUSTER}
    configs = [_config("log.cleanup.policy", "compact", "", (11, 20), **of_brokers)]
    policies = _load(warehouse=_warehouse(spark, tmp_path, [_topic("t", 1)], configs))

    assert _told(policies, "t") is True


def test_a_metadata_log_without_a_cluster_tells_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    topics = [_topic("t", 1, cluster="")]
    policies = _load(warehouse=_warehouse(spark, tmp_path, topics, []))

    assert [_told(policies, "t", cluster=cluster) for cluster in (None, "")] == [None, None]


def test_a_table_that_only_spark_reads_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load = CleanupPolicies.load

    def refused(configs: Any, warehouse: str | None, now_ms: int) -> CleanupPolicies:
        if warehouse is not None:
            raise NoMetadataError("its table metadata_topics is too large to be read")
        return load(configs, warehouse, now_ms)

    monkeypatch.setattr(CleanupPolicies, "load", refused)

    policies = _load(_file(tmp_path, DELETED), warehouse=tmp_path)

    assert [_told(policies, name) for name in ("t", "u")] == [False, None]
    said = "is too large to be read: cleanup policies are not taken from there; give"
    assert said in capsys.readouterr().err


def _disks(folder: Path, *, checkpoints: bool = False) -> dict[str, Path]:
    """Write two copies of t-0; "b" lacks ``LACKS``."""
    rng = random.Random(3)
    left = [one for one in LOG if one.base not in LACKS]
    for node, (name, log) in enumerate({"a": LOG, "b": left}.items(), 1):
        write_copies(folder / name, {"t-0": rolled(rng, log)})
        meta = f"version=1\nnode.id={node}\ncluster.id={CLUSTER}\n"
        (folder / name / "meta.properties").write_text(meta)
        (folder / name / "t-0" / "partition.metadata").write_text(
            f"version: 0\ntopic_id: {uuid_text(1)}"
        )
        if checkpoints:
            (folder / name / "cleaner-offset-checkpoint").write_text("0\n0\n")
    return {name: folder / name for name in "ab"}


def _run(*arguments: object) -> tuple[int, list[dict[str, Any]]]:
    result = CliRunner().invoke(cli, [*map(str, arguments), "--output", "json"])
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


def _copies(disks: dict[str, Path]) -> list[str]:
    return [part for name, disk in disks.items() for part in ("--copy", f"{name}={disk}")]


@pytest.mark.slow
def test_divergence_goes_by_the_policy(spark: SparkSession, tmp_path: Path) -> None:
    copies = _copies(_disks(tmp_path))
    topics = [_topic("t", 1)]
    warehouse = _warehouse(spark, tmp_path / "tables", topics, [])

    def lost(*more: object) -> tuple[int, list[int]]:
        status, rows = _run("divergence", *copies, *more)
        found = [row for row in rows if row["is_finding"]]
        assert {(row["kind"], *row["copies"]) for row in found} <= {("lost middle", "b")}
        return status, [row["from_offset"] for row in found]

    assert lost() == (0, [])
    assert lost("--topic-configs", _file(tmp_path, DELETED)) == (1, [*LACKS])
    assert lost("--warehouse", warehouse, "--dry-run") == (1, [*LACKS])
    assert lost("--topic-configs", _file(tmp_path, COMPACTED)) == (0, [])


@pytest.mark.long
def test_a_policy_that_compacts_counts_more_than_a_checkpoint_without_the_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A follower that was made anew gets a compacted log, and no line in its checkpoint."""
    copies = _copies(_disks(tmp_path, checkpoints=True))

    assert _run("divergence", *copies)[0] == 1
    compacted = _file(tmp_path, COMPACTED)
    assert _run("divergence", *copies, "--topic-configs", compacted)[0] == 0


def _metadata(folder: Path, *configs: bytes, cluster: str = CLUSTER) -> Path:
    """Write a log directory with the metadata log of topic t; ``configs``: records."""
    records = [topic("t", 1), partition(1, 0), *configs]
    return log_dir(folder, {f"{0:020d}.log": log_bytes(records)}, node=9, cluster=cluster)


COMPACTS, DELETES = (config("t", "cleanup.policy", to) for to in ("compact", "delete"))
UNKNOWN = bytes([1, 127, 0])
"""A record of a type that no release has."""


@pytest.mark.long
def test_elect_counts_what_the_metadata_log_at_hand_says_was_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    copies = _copies(_disks(tmp_path))

    def lost(metadata: Path, *more: object) -> dict[str, int]:
        _, rows = _run("divergence", "elect", *copies, "--metadata", metadata, *more)
        return {row["copy"]: row["lost_records"] for row in rows}

    deleted, compacted = _metadata(tmp_path / "d"), _metadata(tmp_path / "c", COMPACTS)
    assert lost(deleted) == {"a": 0, "b": len(LACKS)}
    assert lost(compacted) == {"a": 0, "b": 0}
    assert lost(deleted, "--topic-configs", _file(tmp_path, COMPACTED)) == {"a": 0, "b": 0}


@pytest.mark.long
def test_metadata_logs_among_copies_tell_the_policies_of_their_cluster(
    spark: SparkSession, tmp_path: Path
) -> None:
    copies = _copies(_disks(tmp_path))

    def lost(name: str, *configs: bytes, cluster: str = CLUSTER) -> tuple[int, list[int]]:
        metadata = _metadata(tmp_path / name, *configs, cluster=cluster)
        status, rows = _run("divergence", *copies, "--copy", f"a={metadata}")
        return status, [row["from_offset"] for row in rows if row["is_finding"]]

    assert lost("never") == (1, [*LACKS])
    assert lost("once", COMPACTS, DELETES) == (0, [])
    assert lost("other", cluster="another") == (1, [])  # its own t-0 is not at hand
    assert lost("unclear", COMPACTS, UNKNOWN) == (1, [])  # what holds behind it is not known


@pytest.mark.long
def test_repair_and_backup_verify_go_by_the_metadata_log_at_hand(
    spark: SparkSession, tmp_path: Path
) -> None:
    disks = _disks(tmp_path)
    newest = f"a={_metadata(tmp_path / 'new')}"
    backup = ("--backup", disks["b"], "--backup", _metadata(tmp_path / "old", COMPACTS))
    against = ("--against", f"a={disks['a']}")

    for more, verdict in (((), "complete"), (("--against", newest), "incomplete")):
        rows = _run("backup", "verify", *backup, *against, *more)[1]
        assert [row["verdict"] for row in rows if row["topic"] == "t"] == [verdict]
    repair = ("divergence", "repair", *_copies(disks), "--copy", newest)
    planned = _run(*repair, "--out", tmp_path / "out", "--dry-run")[1]
    assert (planned[0]["from_offset"], planned[-1]["until_offset"]) == (0, len(LOG))


@pytest.mark.long
def test_a_mirrors_gap_is_compaction_only_if_something_else_tells_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The mirror has its source's offsets, lacks two records, and later ones of their keys."""
    disks = _disks(tmp_path)
    cluster = "of-the-mirror"
    meta = disks["b"] / "meta.properties"
    meta.write_text(meta.read_text().replace(f"={CLUSTER}", f"={cluster}"))
    checkpoint = disks["b"] / "cleaner-offset-checkpoint"

    def missing(*more: object) -> tuple[int, list[int]]:
        sides = ("--source", disks["a"], "--mirror", disks["b"])
        status, rows = _run("divergence", "mirror", *sides, *more)
        return status, [row["from_offset"] for row in rows if row["is_finding"]]

    assert missing() == (0, [])  # two gaps, and nothing tells
    deleted = _metadata(tmp_path / "meta", cluster=cluster)
    assert missing("--mirror", deleted) == (1, [*LACKS])
    checkpoint.write_text("0\n0\n")
    assert missing() == (1, [*LACKS])
    assert missing("--topic-configs", _file(tmp_path, COMPACTED)) == (0, [])
    checkpoint.write_text(f"0\n1\nt 0 {LACKS[1]}\n")
    assert missing() == (1, [LACKS[1]])


@pytest.mark.long
def test_repair_and_backup_verify_go_by_the_policy(spark: SparkSession, tmp_path: Path) -> None:
    disks = _disks(tmp_path)
    warehouse = _warehouse(spark, tmp_path / "tables", [_topic("t", 1)], [])
    repair = ("divergence", "repair", *_copies(disks), "--out", tmp_path / "new", "--dry-run")
    verify = ("backup", "verify", "--backup", disks["b"], "--against", f"a={disks['a']}")

    assert _run(*repair) == (0, [])
    _, planned = _run(*repair, "--warehouse", warehouse)
    assert (planned[0]["from_offset"], planned[-1]["until_offset"]) == (0, len(LOG))
    assert [row["verdict"] for row in _run(*verify)[1]] == ["complete"]
    (row,) = _run(*verify, "--warehouse", warehouse, "--dry-run")[1]
    assert (row["verdict"], row["complete_until"]) == ("incomplete", LACKS[0])
