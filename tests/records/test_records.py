"""``records``: found by key, header, offset and time, as it is typed and read."""

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafka_segments.cli import cli
from support.logs.strategies import GZIP, transaction_marker, v2_batch

TIME = 1_700_000_000_000


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two logs of topic t, and one of u with a batch whose checksum does not fit."""
    first = v2_batch(0, [(TIME, b"k0", b'{"a": 1}'), (TIME + 1, b"k1", b"plain")])
    second = v2_batch(2, [(TIME + 5, None, None)], headers=[("trace", b"x1"), ("none", None)])
    marker = transaction_marker(3, timestamp=TIME + 6, producer_id=7)
    third = v2_batch(4, [(TIME + 9, b"k0", b"z" * 500)], codec=GZIP, producer_id=7, leader_epoch=3)
    _write(tmp_path, "t-0", 0, first + second)
    _write(tmp_path, "t-0", 3, marker + third)
    _write(tmp_path, "t-1", 0, v2_batch(0, [(TIME + 2, b"k0", b"\xff\x1b")]))
    bad = bytearray(v2_batch(0, [(TIME, b"k0", b"lost")]))
    bad[-3] ^= 1
    _write(tmp_path, "u-0", 0, bytes(bad) + v2_batch(1, [(TIME, b"k9", b"kept")]))
    return tmp_path


def _write(folder: Path, log: str, base: int, data: bytes) -> None:
    (folder / log).mkdir(exist_ok=True)
    (folder / log / f"{base:020d}.log").write_bytes(data)


def _records(*words: object) -> Result:
    return CliRunner().invoke(cli, ["records", *map(str, words)])


def _rows(*words: object, kind: str = "record") -> list[dict[str, Any]]:
    done = _records(*words, "--output", "json")
    return [row for row in map(json.loads, done.stdout.splitlines()) if row["row"] == kind]


def _offsets(*words: object) -> list[tuple[str, int, int]]:
    return [(row["topic"], row["partition"], row["offset"]) for row in _rows(*words)]


def test_headers_in_csv_are_those_of_json(logs: Path) -> None:
    out = _records(logs, "--header", "trace", "--output", "csv").stdout
    row = next(csv.DictReader(io.StringIO(out, newline="")))

    (told,) = _rows(logs, "--header", "trace")
    assert json.loads(row["headers"]) == told["headers"] != []


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--key", "k0"], [("t", 0, 0), ("t", 0, 4), ("t", 1, 0)]),
        (["--key-hex", "6b31"], [("t", 0, 1)]),
        (["--key", "k"], []),
        (["--key", ""], []),
        (["--header", "trace"], [("t", 0, 2)]),
        (["--header", "trace=x1"], [("t", 0, 2)]),
        (["--header", "trace=x"], []),
        (["--header", "none="], []),
        (["--header", "none"], [("t", 0, 2)]),
        (["--offsets", "4"], [("t", 0, 4)]),
        (["--offsets", "1..4", "--log", "t-0"], [("t", 0, 1), ("t", 0, 2), ("t", 0, 4)]),
        (["--time", f"{TIME + 2}..{TIME + 5}"], [("t", 0, 2), ("t", 1, 0)]),
        (["--key", "k0", "--topic", "u"], []),
        (["--key", "k0", "--time", f"{TIME + 1}..{TIME + 9}"], [("t", 0, 4), ("t", 1, 0)]),
        (["--key", "k9"], [("u", 0, 1)]),
    ],
)
def test_records_are_found_by_all_that_is_given(
    logs: Path, words: list[str], found: list[tuple[str, int, int]]
) -> None:
    assert _offsets(logs, *words) == found


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--key", "none"], True),
        ([], True),
        (["--offsets", "2"], False),
        (["--offsets", "3"], True),
        (["--offsets", "0..3"], True),
        (["--offsets", "4..9"], True),
        (["--offsets", "7..9"], False),
    ],
)
def test_offsets_that_are_in_no_segment_are_told_where_they_are_asked_for(
    tmp_path: Path, words: list[str], told: bool
) -> None:
    _write(tmp_path, "t-0", 0, v2_batch(0, [(TIME, b"a", b"")] * 3))
    _write(tmp_path, "t-0", 5, v2_batch(5, [(TIME, b"a", b"")]))
    _write(tmp_path, "t-1", 0, v2_batch(0, [(TIME, b"a", b"")]))
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n0\n")
    line = f"{tmp_path}/t-0/{3:020d}.log: not known: offsets 3 to 4 are in no segment"

    done = _records(tmp_path, *words)

    assert (line in done.stderr) == told
    assert done.exit_code == int(told)


def test_offsets_that_compaction_may_have_taken_are_not_told(tmp_path: Path) -> None:
    thinned = v2_batch(0, [(TIME, b"a", b"")], last_offset_delta=2)
    _write(tmp_path, "t-0", 0, thinned)
    _write(tmp_path, "t-0", 5, v2_batch(5, [(TIME, b"a", b"")]))
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 5\n")

    assert _records(tmp_path, "--key", "none").exit_code == 0


@pytest.mark.parametrize(("words", "is_told"), [([], True), (["--offsets", "0..2"], False)])
def test_the_end_that_a_log_lacks_is_told(tmp_path: Path, words: list[str], is_told: bool) -> None:
    _write(tmp_path, "t-0", 0, v2_batch(0, [(TIME, b"a", b"")] * 3))
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 5\n")

    done = _records(tmp_path, "--key", "none", *words)

    assert ("not known: the log ends at offset 3, below the high watermark 5" in done.stderr) == (
        is_told
    )
    assert done.exit_code == int(is_told)


def test_a_record_is_told_with_all_that_it_has(logs: Path) -> None:
    (row,) = _rows(logs, "--offsets", "4", "--log", "t-0")

    assert (row["key"], row["value"], row["headers"]) == ("k0", "z" * 500, [])
    assert (row["timestamp_ms"], row["producer_id"], row["leader_epoch"]) == (TIME + 9, 7, 3)
    assert row["path"].endswith(f"t-0/{3:020d}.log")
    assert row["position"] > 0  # behind the marker


@pytest.mark.parametrize(
    ("form", "first", "other"),
    [
        ("text", '{"a": 1}', "\\xff\x1b"),
        ("hex", "7b2261223a20317d", "ff1b"),
        ("json", {"a": 1}, None),
    ],
)
def test_values_are_written_as_is_asked_for(logs: Path, form: str, first: Any, other: Any) -> None:
    rows = _rows(logs, "--key", "k0", "--topic", "t", "--values", form)

    assert rows[0]["value"] == first
    assert other is None or rows[2]["value"] == other


def test_nothing_that_a_record_holds_acts_on_a_terminal(logs: Path) -> None:
    done = _records(logs, "--key", "k0", "--topic", "t")

    assert "\x1b" not in done.output
    assert "\\x1b" in done.output


def test_an_empty_answer_says_what_it_is_worth(logs: Path) -> None:
    whole, torn = _records(logs, "--key", "gone", "--topic", "t"), _records(logs, "--key", "gone")

    assert whole.exit_code == 0
    assert whole.stderr.splitlines() == [
        "0 records found",
        "read: 5 records in 3 segments of 2 logs",
    ]
    assert torn.exit_code == 1
    assert "1 parts could not be read: there the answer is not known" in torn.stderr


def test_where_nothing_lies_nothing_is_known(tmp_path: Path) -> None:
    done = _records(tmp_path, "--key", "k0")

    assert done.exit_code == 1
    assert f"no segments under {tmp_path}: is it mounted" in done.stderr


def test_what_was_read_of_each_log_stands_behind_the_answer(logs: Path) -> None:
    rows = _rows(logs, "--key", "gone", kind="read")

    read = [(row["topic"], row["partition"], row["offset"], row["until_offset"]) for row in rows]
    assert read == [("t", 0, 0, 5), ("t", 1, 0, 1), ("u", 0, 0, 2)]
    assert [(row["segments"], row["records"], row["unreadable"]) for row in rows] == [
        (2, 4, 0),
        (1, 1, 0),
        (1, 1, 1),
    ]


def test_what_no_broker_serves_is_not_read_and_told_where_records_are_asked_for(logs: Path) -> None:
    hex_digits = "0123456789abcdef0123456789abcdef"
    data = v2_batch(0, [(TIME, b"gone", b"1")])
    _write(logs, f"t-2.{hex_digits}-delete", 0, data)
    _write(logs, f"t-3.{hex_digits}-stray", 0, data)
    _write(logs, f"t-4.{hex_digits}-future", 0, data)
    (logs / "t-1" / f"{9:020d}.log.deleted").write_bytes(data)

    asked, idle = _records(logs, "--key", "gone", "--topic", "t"), _records(logs, "--topic", "t")

    assert (asked.exit_code, idle.exit_code) == (1, 0)
    assert asked.stderr.count(": not read: ") == 4
    assert "4 parts could not be read: there the answer is not known" in asked.stderr
    assert _records(logs, "--key", "gone", "--log", "t-0").exit_code == 0


def test_what_stands_in_place_of_records_is_told_without_a_question_too(logs: Path) -> None:
    (logs / "t-2" / f"{0:020d}.log").mkdir(parents=True)
    (logs / "t-2" / "partition.metadata").touch()
    _write(logs, "t-3", 10, b"")
    os.mkfifo(logs / "t-3" / f"{0:020d}.log")
    (logs / "t-1" / f"{9:020d}.log.bak").write_bytes(b"")
    (logs / "t-4").mkdir()
    (logs / "replication-offset-checkpoint").write_text("0\n1\nt 4 7\n")

    done = _records(logs, "--topic", "t")

    assert done.exit_code == 1
    told = [line for line in done.stderr.splitlines() if ": not read: " in line]
    paths = {line.partition(": not read: ")[0] for line in told}
    named = [f"t-2/{0:020d}.log", f"t-3/{0:020d}.log", f"t-1/{9:020d}.log.bak", "t-4"]
    assert paths == {f"{logs}/{name}" for name in named}
    assert "4 parts could not be read: there the answer is not known" in done.stderr


def test_without_a_question_what_cannot_be_read_and_what_is_large_is_told(logs: Path) -> None:
    (bad,) = _rows(logs, kind="unreadable")
    large = _rows(logs, "--largest", 2, kind="large batch")

    assert (bad["topic"], bad["offset"], bad["seek_to"]) == ("u", 0, 1)
    assert bad["why"] == "its checksum does not fit"
    assert bad["client_error"].startswith("KafkaException: Received exception when fetching")
    sizes = [row["size_bytes"] for row in large]
    assert len(large) == 2
    assert sizes == sorted(sizes, reverse=True)
    assert _records(logs).exit_code == 1
    assert _records(logs, "--topic", "t").exit_code == 0


def test_markers_are_no_records(logs: Path) -> None:
    assert ("t", 0, 3) not in _offsets(logs, "--offsets", "0..9")


def test_no_more_records_are_printed_than_asked_for(logs: Path) -> None:
    done = _records(logs, "--offsets", "0..9", "--most", 2)

    assert len(done.stdout.splitlines()) == 3  # and the batch that cannot be read
    assert "6 records found, the first 2 are shown (--most)" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--log", "t"], "topic-partition expected"),
        (["--key", "a", "--key-hex", "61"], "leave only the one that is meant"),
        (["--key-hex", "6"], "--key-hex 6"),
        (["--offsets", "a..b"], "an offset, or FROM..TO expected"),
        (["--time", "now"], "FROM..TO expected"),
        (["--time", "LATEST..now"], "not a name"),
    ],
)
def test_what_cannot_be_meant_is_refused(logs: Path, words: list[str], told: str) -> None:
    done = _records(logs, *words)

    assert done.exit_code == 2
    assert told in done.output


def test_a_segment_that_goes_meanwhile_is_told(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_segments.verbs.find.records import run

    def gone(*_: object) -> object:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(run.SegmentReader, "scan", gone)

    done = _records(logs, "--key", "k0", "--topic", "t")

    assert done.exit_code == 1
    assert done.stderr.count("not read: [Errno 2]") == 3
