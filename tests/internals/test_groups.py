"""Whether __consumer_offsets loads, and what its groups take: by hand, by Kafka, by plain loops."""

import json
import shutil
import struct
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.derived.lost_records import lost_by_records
from kafka_segments.kafka.broker_rules.group_records import group_record_rules
from kafka_segments.kafka.broker_rules.versions import parse_version
from kafka_segments.kafka.messages.records import decode_internal
from kafka_segments.kafka.text.names import OFFSETS_TOPIC
from kafka_segments.verbs.find.internals.groups.decide.groups import decide_groups
from support.kafka.kafka_referee import Referee
from support.logs import group_logs as made
from support.logs.internal_rows import internal_frame, rows_of_log
from support.model.plain_decoder import plain_records

Rows = list[dict[str, Any]]
KEY, VALUE = made.commit_key("g"), made.commit_value(5)
SOUND = (KEY, VALUE)
BROKEN_CRC = bytearray(made.batch(1, SOUND))
BROKEN_CRC[30] ^= 1
_ATTRIBUTES_AT, _CONTROL = 21, 0x20


class Case(NamedTuple):
    """Batches behind a sound one, and what 2.8, 3.4.1, 4.0 and 4.3 do with the partition."""

    batches: list[bytes]
    loads: tuple[str, str, str, str]
    has_kafkas_word: bool = True


ALL_LOAD, ALL_FAIL = ("loads",) * 4, ("fails",) * 4
CASES = [
    Case([], ALL_LOAD),
    Case([made.batch(1, (made.commit_key("g", kind=0), made.commit_value(1, 0)))], ALL_LOAD),
    Case([made.batch(1, (KEY, made.commit_value(6, 4)))], ("fails", "loads", "loads", "loads")),
    Case([made.batch(1, (KEY, b"\x00\x05" + VALUE[2:]))], ALL_FAIL),
    Case([made.batch(1, (KEY, b"\xff\xff" + VALUE[2:]))], ALL_FAIL),
    Case([made.batch(1, (KEY, VALUE[:-3]))], ALL_FAIL),
    Case([made.batch(1, (KEY, b"\x00"))], ALL_FAIL),
    Case([made.batch(1, (KEY, VALUE + b"more"))], ALL_LOAD),
    Case([made.batch(1, (KEY[:-2], VALUE))], ALL_FAIL),
    Case([made.batch(1, (KEY[:-2], None))], ALL_FAIL),
    Case([made.batch(1, (b"\x00", VALUE))], ALL_FAIL),
    Case([made.batch(1, (None, VALUE))], ALL_FAIL),
    Case([made.batch(1, (KEY, None))], ALL_LOAD),
    Case([made.batch(1, (made.group_key("g"), made.empty_classic_group()))], ALL_LOAD),
    Case([made.batch(1, (made.group_key("g"), made.empty_classic_group(5)))], ALL_FAIL),
    Case(
        [made.batch(1, (made.group_key("n", 3), made.consumer_group(1)))],
        ("fails", "skips", "loads", "loads"),
    ),
    Case(
        [made.batch(1, (made.group_key("n", 3), made.consumer_group(1, 1)))],
        ("fails", "skips", "fails", "fails"),
    ),
    Case([made.batch(1, (made.group_key("n", 3), None))], ("fails", "skips", "loads", "loads")),
    Case([made.batch(1, (made.group_key("n", 9), None))], ("fails", "skips", "loads", "skips")),
    Case([made.batch(1, (made.group_key("n", 17), None))], ("fails", "skips", "skips", "loads")),
    Case([made.batch(1, (made.group_key("n", 99), b"\x00"))], ("fails", "skips", "skips", "skips")),
    Case([made.batch(1, (struct.pack(">h", -1), None))], ("fails", "skips", "skips", "skips")),
    Case([made.marker(1, 9, made.COMMIT), made.strange_marker(2)], ALL_LOAD),
    Case([bytes(BROKEN_CRC)], ("damaged",) * 4, has_kafkas_word=False),
    Case([made.batch(1, SOUND)[:-4]], ALL_LOAD, has_kafkas_word=False),
]
RELEASES = ("2.8", "3.4.1", "4.0", "4.3")


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition for each case."""
    disk = tmp_path_factory.mktemp("groups")
    for number, case in enumerate(CASES):
        made.write_log(disk, number, (0, [made.batch(0, SOUND), *case.batches]))
    return disk


@pytest.fixture(scope="module")
def records(spark: SparkSession, disk: Path) -> DataFrame:
    """The records of all cases."""
    logs = [rows_of_log(disk / f"{OFFSETS_TOPIC}-{number}") for number in range(len(CASES))]
    return internal_frame(spark, [row for log in logs for row in log]).persist()


def groups_of(records: DataFrame, release: str) -> Rows:
    rules = group_record_rules(parse_version(release))
    rows = records.transform(decide_groups(rules, lost_by_records(records)))
    return [row.asDict() for row in rows.collect()]


def test_a_group_is_known_by_the_record_of_it_that_lies_behind_lost_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A record of a group as a whole, or of a member, may be among the lost ones."""
    empty, modern = made.empty_classic_group(), made.consumer_group(1)
    front = [
        *((made.commit_key(name), VALUE) for name in ("front", "both", "classic", "ended")),
        (made.group_key("front"), empty),
        (made.group_key("moved", 3), modern),
    ]
    behind = [
        (made.commit_key("both"), VALUE),
        (made.commit_key("behind"), VALUE),
        (made.commit_key("dead"), None),
        *((made.group_key(name), empty) for name in ("classic", "moved")),
        (made.group_key("modern", 3), modern),
        (made.group_key("gone"), None),
        (made.group_key("ended"), None),
        (made.group_key("simple"), None),
        (made.commit_key("simple"), VALUE),
    ]
    batches = [made.batch(0, *front), bytes(BROKEN_CRC)]
    log = made.write_log(tmp_path, 0, (0, batches), (9, [made.batch(9, *behind)]))
    records = internal_frame(spark, rows_of_log(log))

    found = {row["group_id"]: row for row in groups_of(records, "4.3")}

    names = ("group_type", "group_state", "members")
    told = {name: tuple(row[one] for one in names) for name, row in found.items() if name}
    unknown = ("not known", "not known", None)
    assert told == {
        **dict.fromkeys(("front", "both", "behind", "dead", "moved", "ended"), unknown),
        **dict.fromkeys(("classic", "simple"), ("classic", "Empty", 0)),
        "modern": ("consumer", "not known", None),
        "gone": (None, None, None),
    }
    for name, row in found.items():
        is_told = name in ("classic", "simple", "gone")
        assert (row["reason"] is None) == is_told, row
        assert is_told or "checksum is" in row["reason"]


@pytest.mark.parametrize(("place", "release"), list(enumerate(RELEASES)))
def test_a_partition_loads_as_the_code_of_each_release_says(
    records: DataFrame, place: int, release: str
) -> None:
    found = {
        row["partition"]: row for row in groups_of(records, release) if row["group_id"] is None
    }

    assert {number: row["load"] for number, row in found.items()} == {
        number: case.loads[place] for number, case in enumerate(CASES)
    }
    for row in found.values():
        is_refused = row["load"] != "loads"
        assert row["refused_records"] == is_refused
        assert (row["reason"] is not None) == is_refused


def test_kafkas_loader_says_the_same_of_4_3(
    referee: Referee, records: DataFrame, disk: Path, tmp_path: Path
) -> None:
    ours = {row["partition"]: row for row in groups_of(records, "4.3") if row["group_id"] is None}
    for number, case in enumerate(CASES):
        if case.has_kafkas_word:
            name = f"{OFFSETS_TOPIC}-{number}"
            kafkas = referee.load_groups(shutil.copytree(disk / name, tmp_path / name))
            assert (kafkas["error"] is not None) == (ours[number]["load"] == "fails"), case
            if kafkas["error"] is None:
                left_out = ours[number]["refused_records"]
                assert kafkas["taken"] == ours[number]["records"] - left_out, case


def test_what_is_refused_is_told_with_its_place(records: DataFrame) -> None:
    rows = [row for row in groups_of(records, "2.8") if row["group_id"] is None]
    told = {
        row["partition"]: (row["first_refused_offset"], row["reason"])
        for row in rows
        if row["partition"] in (2, 15, 20)
    }

    assert told == {
        2: (1, "OffsetCommit has version 4, 0 to 3 are known"),
        15: (1, "ConsumerGroupMetadata is of type 3, which is not known"),
        20: (1, "the record is of type 99, which is not known"),
    }


def test_what_is_superseded_deleted_and_aborted_is_no_longer_live(
    spark: SparkSession, tmp_path: Path
) -> None:
    closed = [
        made.batch(0, (made.commit_key("g", 0), made.commit_value(1)), SOUND, SOUND),
        made.batch(3, (made.commit_key("gone"), VALUE), (made.commit_key("gone"), None)),
        made.batch(5, SOUND, producer_id=9, flags=made.TRANSACTIONAL),
        made.marker(6, 9, made.ABORT),
    ]
    active = [
        made.batch(7, (made.commit_key("g", 1), VALUE), producer_id=9, flags=made.TRANSACTIONAL),
        made.marker(8, 9, made.COMMIT),
        made.batch(9, (made.commit_key("g", 2), VALUE), (made.commit_key("g", 2), VALUE)),
    ]
    folder = made.write_log(tmp_path, 0, (0, closed), (7, active))

    rows = {row["group_id"]: row for row in _groups(spark, folder)}

    names = ("records", "live_records", "superseded_records", "tombstones")
    assert {group: tuple(row[name] for name in names) for group, row in rows.items()} == {
        None: (9, 3, 5, 1),
        "g": (7, 3, 4, 0),
        "gone": (2, 0, 1, 1),
    }
    sizes = [*map(len, closed), *map(len, active)]
    assert rows[None]["bytes"] == sum(sizes)
    assert rows["g"]["live_bytes"] == pytest.approx(sizes[0] / 3 + sizes[4] + sizes[6] / 2, abs=1)
    assert rows["g"]["cleanable_bytes"] == pytest.approx(sizes[0] * 2 / 3 + sizes[2], abs=1)
    assert rows["gone"]["tombstone_bytes"] == pytest.approx(sizes[1] / 2, abs=1)
    state = ("group_type", "group_state", "members")
    assert [rows["g"][name] for name in state] == ["classic", "Empty", 0]
    assert [rows["gone"][name] for name in state] == [None] * 3


def _groups(spark: SparkSession, folder: Path) -> Rows:
    return groups_of(internal_frame(spark, rows_of_log(folder)), "4.3")


@pytest.fixture(scope="module")
def lived(spark: SparkSession, cluster: Path) -> Rows:
    """The groups of the cluster that lived, by the disks of each broker."""
    rows = []
    for folder in sorted((cluster / "disks").glob(f"node-*/*/{OFFSETS_TOPIC}-*")):
        node = int(folder.parent.parent.name.removeprefix("node-"))
        rows += rows_of_log(folder, broker_id=node)
    return groups_of(internal_frame(spark, rows), "4.3")


def test_groups_states_and_members_are_those_that_admin_described(
    lived: Rows, cluster: Path
) -> None:
    described = json.loads((cluster / "answers" / "groups.json").read_text())
    coordinators = {group["group"]: group["coordinator"] for group in described}
    ours = {
        row["group_id"]: (row["group_type"].capitalize(), row["group_state"], row["members"])
        for row in lived
        if row["group_type"] and row["broker_id"] == coordinators[row["group_id"]]
    }

    assert ours == {
        group["group"]: (group["type"], group["state"], len(group["members"]))
        for group in described
    }


def test_kafkas_loader_takes_every_record_of_the_cluster(
    referee: Referee, lived: Rows, cluster: Path, tmp_path: Path
) -> None:
    for row in lived:
        if row["group_id"] is None and row["broker_id"] == 1:
            name = f"{OFFSETS_TOPIC}-{row['partition']}"
            folder = shutil.copytree(Path(row["log_dir"]) / name, tmp_path / name)
            kafkas = referee.load_groups(folder)
            assert (row["load"], kafkas["error"]) == ("loads", None)
            assert kafkas["taken"] == row["records"]


def test_bytes_of_the_cluster_are_those_of_a_plain_loop(lived: Rows) -> None:
    names = ("records", "live_records", "tombstones", "bytes", "live_bytes", "cleanable_bytes")
    for whole in (row for row in lived if row["group_id"] is None):
        folder = Path(whole["log_dir"]) / f"{OFFSETS_TOPIC}-{whole['partition']}"
        plain = plain_groups(folder)
        ours = {
            row["group_id"]: [row[name] for name in names]
            for row in lived
            if row["log_dir"] == whole["log_dir"] and row["partition"] == whole["partition"]
        }
        files = sum(log.stat().st_size for log in folder.glob("*.log"))
        assert ours.pop(None)[3] <= files
        assert ours == {
            group: pytest.approx([sums[name] for name in names], abs=1)
            for group, sums in plain.items()
        }


def plain_groups(folder: Path) -> dict[str, dict[str, float]]:
    """Sum up a log without aborted transactions, record by record."""
    records = []
    logs = sorted(folder.glob("*.log"))
    for log in logs:
        data = log.read_bytes()
        inside = list(plain_records(data))
        begins = sorted({record.batch_position for record in inside})
        ends = [*begins[1:], len(data)]  # an emptied batch counts to the one before
        sizes = {
            begin: (end - begin) / sum(record.batch_position == begin for record in inside)
            for begin, end in zip(begins, ends, strict=True)
        }
        for record in inside:
            if not data[record.batch_position + _ATTRIBUTES_AT + 1] & _CONTROL:
                records.append((record, sizes[record.batch_position], log == logs[-1]))
    last = {record.key: record.offset for record, _, _ in records}
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for record, size, is_active in records:
        key = decode_internal(OFFSETS_TOPIC, record.key, record.value).key or {}
        group = sums[key.get("group") or key["groupId"]]
        is_last = last[record.key] == record.offset
        is_live = is_last and record.value is not None
        group["records"] += 1
        group["bytes"] += size
        group["live_records"] += is_live
        group["live_bytes"] += size * is_live
        group["tombstones"] += is_last and record.value is None
        group["cleanable_bytes"] += size * (not is_live and not is_active)
    return sums


def _run(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["internals", *arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def warehouse(
    spark: SparkSession, disk: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str]:
    """The option of a warehouse into which one partition was read."""
    del spark
    option = ("--warehouse", str(tmp_path_factory.mktemp("groups") / "warehouse"))
    assert _run("--source", str(disk / f"{OFFSETS_TOPIC}-15"), *option).exit_code == 0
    return option


@pytest.mark.slow
@pytest.mark.usefixtures("asked_few_and_many")
def test_the_verb_prints_what_does_not_load_and_ends_with_1(warehouse: tuple[str, str]) -> None:
    old = _run("groups", "--kafka-version", "3.6", *warehouse)
    new = _run("groups", "--group", "n", "--output", "json", *warehouse)

    assert old.exit_code == 1
    assert f"not known: of {OFFSETS_TOPIC} 1 partitions were read, and no metadata" in old.stderr
    assert "skips: 1 records, the first at offset 1:" in " ".join(old.stdout.split())
    assert "1 of them do not load whole" in old.stderr
    assert f"records of {OFFSETS_TOPIC} were read up to" in old.stderr
    assert new.exit_code == 0
    whole, group = map(json.loads, new.stdout.splitlines())
    assert (whole["group_id"], whole["load"], whole["records"]) == (None, "loads", 2)
    assert (group["group_id"], group["group_type"], group["live_records"]) == ("n", "consumer", 1)


def test_groups_of_no_broker_and_of_an_unknown_release_are_refused(
    warehouse: tuple[str, str],
) -> None:
    assert _run("groups", "--broker-id", "5", *warehouse).exit_code == 2
    assert _run("groups", "--kafka-version", "2.7", *warehouse).exit_code == 2
