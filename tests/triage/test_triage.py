"""``triage``: one page that says what is wrong with a node's directories, and what to do."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafka_segments.cli import cli
from kafka_segments.verbs.find.disk import judged_folders
from kafka_segments.verbs.find.triage.decide import (
    DiskState,
    Line,
    Section,
    StartCost,
    lines_of_cost,
    lines_of_disk,
    steps_of,
)

HEX = "0123456789abcdef0123456789abcdef"


def _triage(*words: object) -> Result:
    return CliRunner().invoke(cli, ["triage", *map(str, words)])


def _rows(*words: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _triage(*words, "--output", "json").stdout.splitlines()]


def _log(node: Path) -> Path:
    return sorted((node / "b").glob("*-?"))[0]


def test_of_a_sound_node_the_one_step_is_to_start_it(node: Path) -> None:
    done = _triage(node)

    assert done.exit_code == 0, done.output
    first, second, *rest = done.output.splitlines()
    assert first.endswith(": starts")
    assert re.fullmatch("  down, after a hard stop; looked at [0-9]+ logs, .* KiB", second)
    assert rest == ["what to do", "  1. start the broker", ""]


def _unlink(path: Path) -> None:
    path.unlink()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _put(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text)


@pytest.mark.parametrize(
    ("file", "spoil", "starts", "row"),
    [
        ("b/meta.properties", _unlink, "does not start", "what stops the start"),
        ("a/meta.properties", _put(""), "does not start", "what stops the start"),
        (
            "a/recovery-point-offset-checkpoint",
            _put("0\nx"),
            "does not start",
            "what stops the start",
        ),
        ("{log}/partition.metadata", _unlink, "starts", "what the start takes away"),
        ("{log}/app.log", _put("x"), "does not start", "what stops the start"),
        ("{segment}", _cut, "starts", "what the start takes away"),
    ],
)
def test_what_is_spoilt_is_named_with_the_step_in_front_of_the_start(
    node: Path, file: str, spoil: Callable[[Path], object], starts: str, row: str
) -> None:
    log = _log(node)
    segment = max(log.glob("*.log"))
    path = node / file.format(log=f"b/{log.name}", segment=f"b/{log.name}/{segment.name}")
    spoil(path)

    verdict, found, *rest = _rows(node)

    assert (verdict["row"], verdict["what"]) == ("verdict", starts)
    assert found["row"] == row
    assert f"{found['log_dir']}/{found['place']}" == str(path)
    steps = [each for each in rest if each["row"] == "step"]
    again = ["run this again"] if row == "what stops the start" else []
    told = [step["step"].partition(":")[0] for step in steps[1:]]
    assert (steps[0]["step"], told) == (found["step"], [*again, "start the broker"])
    assert steps[0]["place"] == str(path)
    assert _triage(node).exit_code == 1


def test_of_copied_logs_alone_a_start_is_not_known(node: Path, tmp_path: Path) -> None:
    shutil.copytree(_log(node), tmp_path / "copies" / "orders-0")

    done = _triage(tmp_path / "copies")

    assert done.exit_code == 1
    assert done.output.splitlines()[0].endswith(": not known whether it starts")


def test_a_stray_folder_waits_until_the_broker_is_up(node: Path) -> None:
    log = _log(node)
    shutil.copytree(log, log.with_name(f"{log.name}.{HEX}-stray"))

    done = _triage(node)

    assert done.exit_code == 1
    assert done.output.index("1. start the broker") < done.output.index(
        "2. decide whether it may go"
    )
    assert f"{log} has its offsets" in done.output


def test_what_was_read_of_the_start_is_not_read_again_for_the_folders(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _log(node)
    shutil.copytree(log, log.with_name(f"{log.name}.{HEX}-stray"))
    before = _triage(node).output
    for name in ("read_metadata_log", "_read_text", "_read_end"):
        monkeypatch.delattr(judged_folders, name)

    assert _triage(node).output == before
    assert "its offsets" in before


def test_a_metadata_log_that_is_older_than_a_log_tells_no_state(node: Path) -> None:
    """An epoch that the log has, and the metadata log has not."""
    (_log(node) / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n7 1\n")

    done = _triage(node)

    assert done.exit_code == 1
    assert f"{_log(node).name} has leader epoch 7, and the metadata log gives" in done.output
    assert "its last records are missing" in done.output


def test_what_a_person_may_not_read_is_not_known(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafka_segments.files.folders import used_disk

    scandir, log = used_disk.os.scandir, str(_log(node))

    def refuse(place: str) -> Any:
        if str(place) == log:
            raise PermissionError(13, "Permission denied", str(place))
        return scandir(place)

    monkeypatch.setattr(used_disk.os, "scandir", refuse)

    done = _triage(node)

    assert done.exit_code == 1
    assert "what is not known" in done.output
    assert "this user may not read it" in done.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "triage needs a folder"),
        (("s3://bucket/logs",), "triage looks at the disks of this machine"),
        (("{empty}",), "no log directory"),
    ],
)
def test_what_is_no_log_directory_is_refused(
    tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    (tmp_path / "empty").mkdir()

    done = _triage(*(word.format(empty=tmp_path / "empty") for word in words))

    assert done.exit_code == 2
    assert told in done.output


def test_a_slow_start_has_a_kit_for_a_step_and_a_quick_one_none() -> None:
    slow = StartCost(95.0, 40.0, 8, 2.0, 300, 10**9)

    (line,) = lines_of_cost(slow, "make a kit")

    assert (line.section, line.step) == (Section.SLOW, "make a kit")
    assert not list(lines_of_cost(slow._replace(seconds=29.9), "make a kit"))


@pytest.mark.parametrize(
    ("disk", "told"),
    [
        (DiskState("/d", 89, None), None),
        (DiskState("/d", 90, None), "its disk is 90 % full"),
        (DiskState("/d", 50, 3_600_000), "its disk is 50 % full; full in 60 min or more"),
        (DiskState("/d", 50, 86_400_000), None),
        (DiskState("/d", None, None), "how full its disk is: the file system does not say"),
    ],
)
def test_a_disk_is_told_where_it_is_full_or_soon_will_be(disk: DiskState, told: str | None) -> None:
    found = [line.what for line in lines_of_disk([disk], (), ())]

    assert found == ([] if told is None else [told])


def test_steps_stand_once_in_the_order_of_their_urgency() -> None:
    lines = [
        Line(Section.ODD, "/d", "x", "", "decide", is_before_start=False),
        Line(Section.LOSES, "/d", "t-0", "", "copy it"),
        Line(Section.STOPS, "/d", "meta.properties", "", "put it back"),
        Line(Section.LOSES, "/d", "t-1", "", "copy it"),
    ]

    steps = steps_of(lines, is_running=False, starts=False)

    assert [step.text.partition(":")[0] for step in steps] == [
        "put it back",
        "copy it",
        "run this again",
        "start the broker",
        "decide",
    ]
    assert steps[1].places == ("/d/t-0", "/d/t-1")
    assert steps_of([], is_running=False, starts=None)[0].text.startswith(
        "what a start does is not"
    )
    assert "a broker runs here" in steps_of(lines, is_running=True, starts=False)[0].text
