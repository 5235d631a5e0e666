"""``triage``, ``disk``, ``cleaner`` and ``records`` in Python: the rows of the commands."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kafka_segments
from kafka_segments import KafkaSegmentsError, UsageError
from kafka_segments.cli import cli
from support.logs.strategies import v2_batch

NOW_MS = 2_000_000_000_000


def _rows(*words: object) -> list[dict[str, Any]]:
    line = [*map(str, words), "--now-ms", str(NOW_MS), "--output", "json"]
    return [json.loads(text) for text in CliRunner().invoke(cli, line).stdout.splitlines()]


def _as_json(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows as JSON has them."""
    return [json.loads(json.dumps(row)) for row in rows]


def test_the_page_of_a_node_has_the_commands_rows(node: Path) -> None:
    found = kafka_segments.triage(node, now_ms=NOW_MS)

    assert _as_json(found.rows) == _rows("triage", node)
    assert not found.has_findings


def test_a_spoilt_node_has_findings(node: Path) -> None:
    (node / "b" / "meta.properties").unlink()

    found = kafka_segments.triage(node / "a", node / "b", check="full", now_ms=NOW_MS)

    assert found.has_findings
    assert found.rows[0]["what"] == "does not start"


def test_the_account_of_a_disk_has_the_commands_rows(node: Path) -> None:
    found = kafka_segments.disk(node, now_ms=NOW_MS)

    assert _as_json(found.kinds) == _rows("disk", node)
    assert _as_json(found.topics) == _rows("disk", node, "--rows", "topics")
    assert (found.folders, found.not_known, found.has_findings) == ([], [], False)
    assert len(found.disks) == len({row["log_dir"] for row in found.kinds})


def test_where_logs_stand_with_the_cleaner_has_the_commands_rows(node: Path) -> None:
    found = kafka_segments.cleaner(node, what_if={"min.cleanable.dirty.ratio": 0}, now_ms=NOW_MS)

    changed = "--what-if", "min.cleanable.dirty.ratio=0"
    assert _as_json(found.logs) == _rows("cleaner", node, *changed)
    assert (found.not_known, found.has_findings) == ([], False)


def test_what_a_consumer_cannot_read_has_the_commands_rows(tmp_path: Path) -> None:
    log = tmp_path / "t-0" / f"{0:020d}.log"
    log.parent.mkdir()
    sound, spoilt = (v2_batch(n, [(NOW_MS, b"k", bytes([n]))]) for n in range(2))
    log.write_bytes(sound + spoilt[:-1] + b"x" + v2_batch(2, [(NOW_MS, b"k2", b"v")]))

    found = kafka_segments.records(tmp_path)
    asked = kafka_segments.records(tmp_path, topics="t", key="k", offsets=(0, 9), values="hex")

    assert _as_json([*found.rows, *found.read]) == _rows("records", tmp_path)
    assert (found.has_findings, found.more, found.not_read) == (True, 0, [])
    words = "--key", "k", "--offsets", "0..9", "--values", "hex"
    assert _as_json([*asked.rows, *asked.read]) == _rows("records", tmp_path, *words)
    records = [row["value"] for row in asked.rows if row["row"] == "record"]
    assert (records, kafka_segments.records(tmp_path, key="k2", most=1).more) == (["00"], 0)


def test_a_file_that_cannot_be_read_is_a_finding_of_records(tmp_path: Path) -> None:
    log = tmp_path / "t-0" / f"{0:020d}.log"
    log.parent.mkdir()
    log.write_bytes(v2_batch(0, [(NOW_MS, b"k", b"v")]))
    (tmp_path / "t-0-delete").mkdir()
    (tmp_path / f"t-1.{'a' * 32}-delete").mkdir()
    (tmp_path / f"t-1.{'a' * 32}-delete" / log.name).write_bytes(log.read_bytes())

    found = kafka_segments.records(tmp_path, key="other")

    assert found.has_findings and len(found.not_read) == 1
    with pytest.raises(UsageError, match="no segment of topic u"):
        kafka_segments.records(tmp_path, topics="u")
    with pytest.raises(UsageError, match="header_value needs a header"):
        kafka_segments.records(tmp_path, header_value="v")


@pytest.mark.parametrize(
    "ask", [kafka_segments.triage, kafka_segments.disk, kafka_segments.cleaner]
)
def test_what_is_no_folder_of_this_machine_is_refused(
    ask: Callable[..., object], tmp_path: Path
) -> None:
    for folders in ((), ("s3://bucket/logs",), (tmp_path, tmp_path)):
        with pytest.raises(UsageError):
            ask(*folders)
    with pytest.raises(KafkaSegmentsError, match="/nowhere"):
        ask("/nowhere/logs")


def test_values_that_are_none_are_refused(node: Path) -> None:
    with pytest.raises(UsageError, match="check"):
        kafka_segments.triage(node, check="some")
    with pytest.raises(UsageError, match="KEY one of"):
        kafka_segments.cleaner(node, what_if={"retention.ms": 1})
