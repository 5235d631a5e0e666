"""The report's sections about directories: from files that other verbs printed."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from kafka_segments.cli import cli
from kafka_segments.errors import UsageError
from kafka_segments.verbs.tell.report import command
from kafka_segments.verbs.tell.report.directories import DirectoryView, directory_views
from kafka_segments.verbs.tell.report.directory_files import read_answers

WRITTEN_S = 1_700_000_000
STRAY = ".0123456789abcdef0123456789abcdef-stray"


WORDS = {
    "triage": ("triage",),
    "kinds": ("disk",),
    "topics": ("disk", "--rows", "topics"),
    "folders": ("disk", "--rows", "folders"),
    "disks": ("disk", "--rows", "disks"),
    "cleaner": ("cleaner",),
    "records": ("records",),
}


class Printed(NamedTuple):
    """A node with a torn checkpoint, a stray folder and a rotten batch, and what verbs say of it.

    ``sound``: the triage before all that.
    """

    node: Path
    stray: str
    sound: Path
    files: dict[str, Path]


@pytest.fixture(scope="module")
def printed(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Printed:
    folder = tmp_path_factory.mktemp("printed")
    node = folder / "node"
    shutil.copytree(next(cluster.rglob("node-1")), node)
    for deleted in node.glob("*/*-delete"):
        shutil.rmtree(deleted)
    sound = _printed(folder / "sound.json", "triage", node)
    log = next(log for log in sorted((node / "b").glob("*-?")) if _segment(log).stat().st_size)
    stray = shutil.copytree(log, log.with_name(f"{log.name}{STRAY}")).name
    with _segment(log).open("r+b") as stream:
        stream.seek(17)  # of the first batch's checksum
        stream.write(b"\xff\xff")
    (node / "a" / "recovery-point-offset-checkpoint").write_text("0\nx")
    files = {
        name: _printed(folder / name, words[0], node, *words[1:]) for name, words in WORDS.items()
    }
    return Printed(node, stray, sound, files)


def _segment(log: Path) -> Path:
    return min(log.glob("*.log"))


def _printed(file: Path, *words: object) -> Path:
    done = CliRunner().invoke(cli, [*map(str, words), "--output", "json"])
    file.write_text(done.stdout)
    os.utime(file, (WRITTEN_S, WRITTEN_S))
    return file


def _view(file: Path, last_run_ms: int | None = None) -> DirectoryView:
    (view,) = directory_views(read_answers([file]), last_run_ms)
    return view


@pytest.mark.parametrize(
    ("name", "heading", "counts", "cell"),
    [
        ("triage", "Triage", "found by triage", "what stops the start"),
        ("kinds", "What takes the disk", "in log directories", "segments"),
        ("topics", "Topics on the disks", "in the 24 hours", "orders"),
        ("folders", "Folders that nobody", "waiting", "{stray}"),
        ("disks", "How full the disks are", "full", "no"),
        ("cleaner", "The log cleaner", "at the cleaner", "__consumer_offsets-0"),
        ("records", "Records that", "unreadable for consumers", "large batch"),
    ],
)
def test_what_each_verb_prints_is_a_card_and_a_section(
    printed: Printed, name: str, heading: str, counts: str, cell: str
) -> None:
    file = printed.files[name]

    view = _view(file)

    assert view.heading.startswith(heading)
    assert counts in view.card.counts
    assert view.says.startswith(f"From {file}, a file written at 2023-11-14 22:13:20 UTC. ")
    assert ("on the command's stderr" in view.says) == (name != "triage")
    assert any(cell.format(stray=printed.stray) in row for row in view.table.rows)
    assert all(len(row) == len(view.table.headings) for row in view.table.rows)


def test_a_card_is_bad_where_somebody_must_look(printed: Printed) -> None:
    triage, folders, records = (
        _view(printed.files[name]) for name in ("triage", "folders", "records")
    )

    assert triage.card.is_bad and folders.card.is_bad and records.card.is_bad
    assert triage.says.endswith(" UTC. broker 1 of cluster AAAAAAAAAAAAAAAAAAAAAQ does not start.")
    torn = f"{printed.node}/a/recovery-point-offset-checkpoint"
    assert any(step.endswith(torn) for step in triage.steps)
    assert (folders.card.figure, records.card.figure) == ("1", "1")
    assert "its checksum does not fit" in records.table.rows[0][2]


def test_of_a_sound_node_the_card_is_not_bad_and_the_step_is_to_start_it(printed: Printed) -> None:
    view = _view(printed.sound)

    assert (view.card.figure, view.card.is_bad) == ("0", False)
    assert view.steps == ["start the broker"]
    assert view.table.rows == []


def test_a_file_older_than_the_tables_says_so_and_many_rows_are_cut(tmp_path: Path) -> None:
    row = {"log_dir": "/d", "folder": "t-0", "used_bytes": 1, "may_go": "not known", "why": "w"}
    file = tmp_path / "rows.json"
    file.write_text(f"{json.dumps(row)}\n" * 101)
    os.utime(file, (WRITTEN_S, WRITTEN_S))

    older, same = (_view(file, WRITTEN_S * 1000 + more) for more in (1, 0))

    assert ", before the last build of the tables. " in older.says
    assert "before the last build" not in same.says
    assert older.says.endswith(" The first 100 of 101 rows are shown.")
    assert (len(older.table.rows), older.card.figure) == (100, "101")


def test_a_disk_of_which_it_is_not_known_how_full_it_is_is_to_be_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    known = {"log_dir": "/d", "used_bytes": 1, "disk_bytes": 100, "broker_runs": None}
    of_it = {"disk_used_bytes": 50, "disk_free_bytes": 40}
    unknown = dict.fromkeys(("disk_bytes", *of_it))
    seen = []
    for rows in ([of_it], [of_it, unknown], [unknown], [{**of_it, "disk_free_bytes": 5}]):
        file.write_text("".join(f"{json.dumps({**known, **row})}\n" for row in rows))
        seen.append((_view(file).card.figure, _view(file).card.is_bad))

    assert seen == [("55 %", False), ("55 %", True), ("not known", True), ("90 %", True)]


def _without_last(text: str) -> str:
    return "".join(text.splitlines(keepends=True)[:-1])


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda text: "", "{file} is empty"),
        (lambda text: "no JSON", "{file}, line 1, is no row that triage, disk, cleaner or"),
        (lambda text: "[" * 100_000, "{file}, line 1, is no row that triage, disk"),
        (lambda text: '{"topic": "t"}\n' + text, "{file}, line 1, is no row that triage"),
        (lambda text: "\udcff", "{file}, line 1, is no row that"),
        (lambda text: text[:-9], "{file}, line 2, is no row as triage, disk, cleaner or"),
        (lambda text: text + '{"what": 7}', "{file}, line 3, is no row as "),
        (lambda text: text.replace("verdict", "verdikt"), "{file}, line 1, is no row as "),
        (_without_last, "{file} is cut: its last line is no row `step`"),
    ],
)
def test_a_spoilt_or_foreign_file_is_named_with_its_line(
    printed: Printed, tmp_path: Path, spoil: Callable[[str], str], told: str
) -> None:
    file = tmp_path / "rows.json"
    file.write_text(spoil(printed.sound.read_text()), errors="surrogateescape")

    with pytest.raises(UsageError) as refused:
        read_answers([file])

    assert str(refused.value).startswith(told.format(file=file))


def test_such_a_file_ends_the_report_before_it_starts_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(command, "verb_session")
    (tmp_path / "rows.json").write_text("{}\n")
    given = {"warehouse": "/wh", "out": "/page.html", "now_ms": 0, "output": "table"}

    with pytest.raises(UsageError, match="line 1, is no row"):
        command._report(**given, directories=(tmp_path / "rows.json",))
