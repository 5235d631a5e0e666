"""``cleaner``: where a node's compacted logs stand, as it is typed and read."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafka_segments.cli import cli
from kafka_segments.console.output import utc
from kafka_segments.kafka.broker_rules.cleaner.log_cleaner import (
    CleanedLog,
    CleanedSegment,
    CleanerConfig,
    keys_of_a_pass,
)
from kafka_segments.verbs.find.cleaner.configs import Levels, policy_of
from kafka_segments.verbs.find.cleaner.decide import LogFacts, Policy, Stand, decide_stands

CHECKPOINT = "cleaner-offset-checkpoint"
KEY = ("/d", "t-0")


def _cleaner(*words: object) -> Result:
    return CliRunner().invoke(cli, ["cleaner", *map(str, words)])


def _rows(*words: object) -> dict[str, dict[str, Any]]:
    done = _cleaner(*words, "--output", "json")
    return {row["folder"]: row for row in map(json.loads, done.stdout.splitlines())}


def test_the_compacted_logs_are_those_of_the_metadata_log(node: Path) -> None:
    done, rows = _cleaner(node), _rows(node)

    assert done.exit_code == 0, done.output
    assert {name.rpartition("-")[0] for name in rows} == {
        "__consumer_offsets",
        "__transaction_state",
        "clicks",
    }
    offsets = rows["__consumer_offsets-0"]
    assert offsets["stand"] == "only the active segment is dirty"
    assert offsets["first_dirty_offset"] == offsets["until_offset"] == offsets["checkpoint"]


def test_a_log_that_was_never_cleaned_is_next(node: Path) -> None:
    (node / "a" / CHECKPOINT).unlink()

    row = _rows(node)["__consumer_offsets-0"]

    assert (row["stand"], row["checkpoint_state"], row["dirty_ratio"]) == (
        "cleaned next",
        "none",
        1,
    )
    assert row["most_passes"] == 1


def test_what_if_settings_count_over_all_others(node: Path) -> None:
    (node / "a" / CHECKPOINT).unlink()

    rows = _rows(node, "--what-if", "min_compaction_lag_ms=9000000000000")

    assert rows["__consumer_offsets-0"]["stand"] == "too young"
    assert rows["__consumer_offsets-0"]["min_compaction_lag_ms"] == 9_000_000_000_000


def test_a_partition_in_two_checkpoints_ends_the_cleaner(node: Path) -> None:
    shutil.copy(node / "a" / CHECKPOINT, node / "b" / CHECKPOINT)

    done = _cleaner(node)

    assert done.exit_code == 1
    assert f"in the {CHECKPOINT} of two directories: the cleaner ends" in done.output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0\n1\nt 0 99999999999999999999\n", "the cleaner ends"),
        ("1\n", "cannot be read"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_told(node: Path, text: str, told: str) -> None:
    (node / "a" / CHECKPOINT).write_text(text)

    done = _cleaner(node)

    assert done.exit_code == 1
    assert told in done.output


@pytest.mark.parametrize("name", ["replication-offset-checkpoint", "log-start-offset-checkpoint"])
def test_a_checkpoint_that_bounds_the_cleaner_is_told_where_it_is_spoilt(
    node: Path, name: str
) -> None:
    (node / "a" / name).write_text("1\n")

    row = _rows(node)["__consumer_offsets-0"]

    assert (row["stand"], row["dirty_ratio"]) == ("not known", None)
    assert f"{name} cannot be read" in row["why"]
    assert _cleaner(node).exit_code == 1


@pytest.mark.parametrize(
    "name", ["replication-offset-checkpoint", "log-start-offset-checkpoint", CHECKPOINT]
)
def test_a_pipe_in_place_of_a_checkpoint_is_no_missing_one(node: Path, name: str) -> None:
    (node / "a" / name).unlink()
    os.mkfifo(node / "a" / name)

    done, row = _cleaner(node), _rows(node)["__consumer_offsets-0"]

    assert done.exit_code == 1
    assert (row["stand"], row["dirty_ratio"]) == ("not known", None)
    assert f"{name} cannot be read: a pipe" in row["why"]


def test_without_an_entry_of_it_the_high_watermark_of_a_log_is_not_known(node: Path) -> None:
    (node / "a" / "replication-offset-checkpoint").write_text("0\n0\n")

    done, rows = _cleaner(node), _rows(node)

    assert done.exit_code == 1
    assert rows["__consumer_offsets-0"]["stand"] == "not known"
    assert rows["__consumer_offsets-0"]["why"] == "replication-offset-checkpoint has no entry of it"
    assert rows["__consumer_offsets-1"]["stand"] == "only the active segment is dirty"


def test_of_a_node_without_an_id_its_own_settings_are_not_known(node: Path) -> None:
    for folder in ("a", "b"):
        (node / folder / "meta.properties").write_text("version=1\n")

    done = _cleaner(node)

    assert done.exit_code == 1
    assert "which settings of one broker alone hold: no node id is in " in done.output


def test_a_policy_is_a_list_with_or_without_spaces(node: Path) -> None:
    plain = _rows(node, "--what-if", "cleanup.policy=delete,compact")

    assert _rows(node, "--what-if", "cleanup.policy=delete , compact").keys() == plain.keys()
    assert "orders-0" in plain


def test_a_cleaner_that_is_off_is_told(node: Path, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("log.cleaner.enable=false\n")

    done = _cleaner(node, "--server-properties", tmp_path / "server.properties")

    assert done.exit_code == 1
    assert "the cleaner does not run: log.cleaner.enable is false" in done.output


def test_without_a_metadata_log_what_is_compacted_is_not_known(node: Path) -> None:
    done, rows = _cleaner(node / "b"), _rows(node / "b")

    assert done.exit_code == 1
    assert "no metadata log, __cluster_metadata-0, is among the folders given" in done.output
    assert "logs are compacted is not known" in done.output
    assert "__consumer_offsets-1" in rows


def test_whether_a_topic_that_no_metadata_names_is_compacted_is_not_known(node: Path) -> None:
    log = next(path for path in node.glob("b/orders-*") if path.is_dir())
    log.rename(log.with_name("new-0"))

    done = _cleaner(node)

    assert done.exit_code == 1
    assert "whether 1 logs are compacted is not known" in done.output


def test_a_log_that_cannot_be_read_is_not_known(node: Path) -> None:
    for file in (node / "a" / "__consumer_offsets-0").glob("*.log"):
        file.unlink()

    row = _rows(node)["__consumer_offsets-0"]

    assert (row["stand"], row["why"]) == ("not known", "it has no segment")
    assert row["dirty_ratio"] is None


def _last_segment(log: Path) -> Path:
    """Give the last segment, which the high watermark lies in."""
    return max(log.glob("*.log"))


def _is_cut(log: Path) -> None:
    _last_segment(log).write_bytes(b"")


def _is_a_folder(log: Path) -> None:
    file = _last_segment(log)
    file.unlink()
    file.mkdir()


def _leads_nowhere(log: Path) -> None:
    file = _last_segment(log)
    file.unlink()
    file.symlink_to(log / "nowhere")


def _has_zeros(log: Path) -> None:
    file = _last_segment(log)
    data = file.read_bytes()
    (log / f"{10**9:020d}.log").write_bytes(data[:0])
    file.write_bytes(data + bytes(512))


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (_is_cut, "below the high watermark"),
        (_is_a_folder, ".log is a folder"),
        (_leads_nowhere, ".log is a link that leads nowhere"),
        (_has_zeros, ".log: batch at byte"),
    ],
)
def test_of_a_log_that_lacks_what_it_had_nothing_is_known(
    node: Path, happens: Callable[[Path], None], why: str
) -> None:
    happens(node / "a" / "__consumer_offsets-0")

    done, row = _cleaner(node), _rows(node)["__consumer_offsets-0"]

    assert done.exit_code == 1
    assert (row["stand"], row["end_offset"]) == ("not known", None)
    assert why in row["why"]


def test_zeros_of_a_preallocated_file_are_no_damage(node: Path) -> None:
    folder = node / "a" / "__consumer_offsets-0"
    for snapshot in folder.glob("*.snapshot"):
        snapshot.unlink()
    sound = _rows(node)
    file = _last_segment(folder)
    file.write_bytes(file.read_bytes() + bytes(4096))

    row = _rows(node)["__consumer_offsets-0"]

    names = ("stand", "end_offset", "high_watermark", "first_unstable_offset", "until_offset")
    assert [row[name] for name in names] == [sound["__consumer_offsets-0"][name] for name in names]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "cleaner needs a folder"),
        (("{node}", "--what-if", "retention.ms=1"), "KEY=VALUE expected"),
        (("{node}", "--what-if", "log.cleaner.threads=x"), "a number expected"),
    ],
)
def test_what_cannot_be_meant_is_refused(node: Path, words: tuple[str, ...], told: str) -> None:
    done = _cleaner(*(word.format(node=node) for word in words))

    assert done.exit_code == 2
    assert told in done.output


LOG = CleanedLog(
    [CleanedSegment(0, 100, 50, 10), CleanedSegment(10, 60, 90, 60), CleanedSegment(20, 5)],
    start=0,
    end=25,
    high_watermark=25,
    first_unstable=None,
    checkpoint=0,
)


@pytest.mark.parametrize(
    ("log", "config", "stand", "why"),
    [
        (LOG, CleanerConfig(), Stand.NEXT, ""),
        (LOG._replace(checkpoint=25), CleanerConfig(), Stand.CLEAN, ""),
        (LOG._replace(checkpoint=20), CleanerConfig(), Stand.ACTIVE, "it begins at offset 20"),
        (LOG._replace(checkpoint=10), CleanerConfig(), Stand.BELOW, "0.375 is not above 0.5"),
        (LOG._replace(first_unstable=3), CleanerConfig(), Stand.TRANSACTION, "since offset 3"),
        (
            LOG._replace(high_watermark=4),
            CleanerConfig(),
            Stand.HIGH_WATERMARK,
            "21 offsets before",
        ),
        (LOG, CleanerConfig(min_compaction_lag_ms=60), Stand.YOUNG, "min.compaction.lag.ms is 60"),
        (
            LOG._replace(checkpoint=10),
            CleanerConfig(max_compaction_lag_ms=30),
            Stand.NEXT,
            "max.compaction.lag.ms has passed",
        ),
        (LOG._replace(checkpoint=99), CleanerConfig(), Stand.NEXT, "lies behind the log's end"),
    ],
)
def test_a_log_stands_where_its_bounds_leave_it(
    log: CleanedLog, config: CleanerConfig, stand: Stand, why: str
) -> None:
    facts = {KEY: LogFacts(log, config)}

    found = decide_stands(facts, now_ms=100, stopped=None, keys_of_a_pass=1000)[KEY]

    assert found.stand == stand
    assert why in found.why


def test_a_dirtier_log_comes_first_and_a_cleaner_that_is_off_cleans_none() -> None:
    other = ("/d", "u-0")
    facts = {
        KEY: LogFacts(LOG, CleanerConfig()),
        other: LogFacts(LOG._replace(checkpoint=10), CleanerConfig(0.1)),
    }

    found = decide_stands(facts, now_ms=100, stopped=None, keys_of_a_pass=3)
    off = decide_stands(facts, now_ms=100, stopped="off", keys_of_a_pass=3)

    assert (found[KEY].stand, found[other].stand) == (Stand.NEXT, Stand.DUE)
    assert found[KEY].most_passes == 7  # 20 offsets, 3 keys a pass
    assert {one.stand for one in off.values()} == {Stand.STOPPED}


def test_a_pass_holds_as_many_keys_as_the_buffer_of_a_thread() -> None:
    assert keys_of_a_pass(134_217_728, 1, 0.9) == 5_033_164
    assert keys_of_a_pass(134_217_728, 2, 0.9) == 2_516_581


def test_what_a_pass_frees_is_told_where_records_are_read(node: Path) -> None:
    (node / "a" / CHECKPOINT).unlink()
    words = (node, "--check", "records", "--now-ms", 2**41)  # its producers are long forgotten
    row = _rows(*words)["__consumer_offsets-0"]

    assert row["pass_clean_until"] == row["until_offset"]
    assert (row["pass_freed_bytes"], row["pass_estimated_bytes"]) == (61, 0)
    assert (row["pass_markers_removed"], row["pass_markers_kept"]) == (1, 1)
    assert (row["pass_records_removed"], row["pass_records_kept"]) == (0, 29)
    assert "61 bytes" in _cleaner(*words).output
    assert _rows(node)["__consumer_offsets-0"]["pass_freed_bytes"] is None


def test_one_log_is_told_in_words(node: Path) -> None:
    (node / "a" / CHECKPOINT).unlink()

    done = _cleaner(node, "--log", "__consumer_offsets-0", "--check", "records", "--now-ms", 2**41)

    lines = done.stdout.splitlines()
    assert lines[0] == f"__consumer_offsets-0 in {node}/a: cleaned next"
    assert "  policy: cleanup.policy=compact" in lines
    assert "  ratio: 1.000, 3.5 KiB of 3.5 KiB; it is cleaned above 0.5" in done.stdout
    assert "  a pass now: 61 of 3635 bytes go, 0 of 29 records, 1 of 2 markers" in done.stdout


def test_when_its_policy_was_set_is_told_by_the_metadata_log(node: Path) -> None:
    assert _rows(node)["clicks-0"]["cleanup_policy_set_at"] is None  # its checkpoint has it
    for checkpoint in node.rglob("*.checkpoint"):
        checkpoint.unlink()

    set_at = _rows(node)["clicks-0"]["cleanup_policy_set_at"]

    assert set_at > 0
    told = f"  policy: cleanup.policy=compact, set {utc(set_at)}"
    assert told in _cleaner(node, "--log", "clicks-0").stdout.splitlines()


def test_with_another_segment_ms_the_active_segment_counts_as_rolled(node: Path) -> None:
    words = (node, "--what-if", "segment.ms=1", "--check", "records")
    before, row = _rows(node)["__consumer_offsets-0"], _rows(*words)["__consumer_offsets-0"]

    assert before["cleanable_bytes"] == 0
    assert row["until_offset"] == row["end_offset"] == row["pass_clean_until"]
    assert row["cleanable_bytes"] == before["dirty_bytes"] == row["dirty_bytes"]
    assert row["pass_records_removed"] > 0
    assert _rows(node, "--what-if", f"segment.ms={2**50}")["__consumer_offsets-0"] == {**before}


def test_a_log_of_which_no_metadata_tells_whether_it_is_compacted_is_not_known(node: Path) -> None:
    log = next(path for path in (node / "b").glob("*-0") if not path.name.startswith("__"))

    done = _cleaner(node / "b", "--log", log.name)

    assert (done.exit_code, done.stdout) == (1, "")
    assert f"not known: whether {log.name} is compacted" in done.stderr.splitlines()


def test_only_a_topics_own_policy_has_a_time() -> None:
    levels = Levels({}, ())
    assert policy_of(levels, {"cleanup.policy": "compact"}, 7) == Policy("compact", 7)
    assert policy_of(levels, {}, 7) is None
    changed = Levels({"cleanup.policy": "compact"}, ())
    assert policy_of(changed, {"cleanup.policy": "delete"}, 7) == Policy("compact")


def test_a_log_at_which_the_cleaner_throws_is_for_a_person(node: Path) -> None:
    (node / "a" / CHECKPOINT).unlink()
    log = min((node / "a" / "__consumer_offsets-0").glob("*.log"))
    data = log.read_bytes()
    log.write_bytes(data[:16] + b"\x07" + data[17:])

    done = _cleaner(node, "--check", "records")
    row = _rows(node, "--check", "records")["__consumer_offsets-0"]

    assert done.exit_code == 1
    assert row["stand"] == "the cleaner gives it up"
    assert f"{log.name} byte 0: CorruptRecordException: its magic is 7" in row["why"]
    assert row["pass_freed_bytes"] is None


def test_what_the_cleaner_makes_of_rotten_bytes_is_not_known(node: Path) -> None:
    (node / "a" / CHECKPOINT).unlink()
    log = min((node / "a" / "__consumer_offsets-0").glob("*.log"))
    data = log.read_bytes()
    log.write_bytes(data[:70] + bytes([data[70] ^ 1]) + data[71:])

    done = _cleaner(node, "--check", "records")

    assert done.exit_code == 1
    assert "what a pass frees is not known" in done.output
