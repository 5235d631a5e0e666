"""A segment that is missing, between two others or at the end, is told by all that ask for it."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.tables.delta import Warehouse
from support.logs.strategies import v2_batch

BASES = (0, 10, 20)
LACKING = f"{10:020d}.log"
OFFSETS = "__consumer_offsets"  # compacted, but here the cleaner has not been
POINTS, WATERMARKS = "recovery-point-offset-checkpoint", "replication-offset-checkpoint"
SLOW = ((True, False), (False, True))
SHARES = "__share_group_state"  # never compacted


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Two logs that lack their second segments; the cleaner has noted one of them."""
    root = tmp_path / "logs"
    for name in ("plain-0", "cleaned-0"):
        for base in BASES:
            log = root / name / f"{base:020d}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            batches = (v2_batch(n, [(1000 + n, b"k", b"v")]) for n in range(base, base + 10))
            log.write_bytes(b"".join(batches))
        (root / name / LACKING).unlink()
    (root / "meta.properties").write_text("version=1\ncluster.id=east\nnode.id=3\n")
    (root / "cleaner-offset-checkpoint").write_text("0\n1\ncleaned 0 20\n")
    return root


def _run(*arguments: object) -> tuple[int, str, list[dict[str, object]]]:
    done = CliRunner().invoke(cli, [*map(str, arguments), "--output", "json"])
    return done.exit_code, done.stderr, [json.loads(line) for line in done.stdout.splitlines()]


def _build(log_dir: Path, warehouse: Path) -> tuple[int, list[str]]:
    status, told, _ = _run("build", "--source", log_dir, "--warehouse", warehouse)
    return status, [line for line in told.splitlines() if "are in no segment" in line]


FOLDERS = ("lost-0", "marked-0", "moved-0", "deleted-0", "kept-0", "kept-1", "kept-2", "kept-3")


def _noted(*folders: str) -> str:
    lines = [f"{folder.replace('-', ' ')} 10" for folder in folders]
    return "\n".join(["0", str(len(lines)), *lines, ""])


@pytest.mark.parametrize(
    ("has_few", "has_points"),
    [(True, True), *(pytest.param(*slow, marks=pytest.mark.slow) for slow in SLOW)],
)
def test_a_log_whose_folder_goes_is_a_finding_while_its_log_directory_notes_it(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_few: bool,
    has_points: bool,
) -> None:
    disk, other = tmp_path / "disk-1", tmp_path / "disk-2"
    for root in (disk, other):
        root.mkdir()
        (root / "meta.properties").write_text("version=1\ncluster.id=east\nnode.id=3\n")
    for folder in FOLDERS:
        (disk / folder).mkdir()
        (disk / folder / f"{0:020d}.log").write_bytes(v2_batch(9, [(1000, b"k", b"v")]))
    (disk / POINTS).write_text(_noted(*FOLDERS) if has_points else "0\n0\n")
    (disk / WATERMARKS).write_text(_noted(*FOLDERS))
    words = ("build", "--source", disk, "--source", other, "--warehouse", tmp_path / "tables")
    if not has_few:
        monkeypatch.setattr(Warehouse, "columns_in_driver", lambda *_, **__: None)
    _run(*words)

    shutil.rmtree(disk / "lost-0")
    (disk / "marked-0").rename(disk / f"marked-0.{'0' * 32}-delete")
    (disk / "moved-0").rename(other / "moved-0")
    shutil.rmtree(disk / "deleted-0")
    if has_points:  # its broker did, and has not written the other checkpoint yet
        (disk / POINTS).write_text(_noted(*(name for name in FOLDERS if name != "deleted-0")))
    else:
        (disk / WATERMARKS).write_text(_noted(*(name for name in FOLDERS if name != "deleted-0")))
    status, err, _ = _run(*words)

    notes = POINTS if has_points else WATERMARKS
    assert status == 1
    assert [line for line in err.splitlines() if " is gone, " in line] == [
        f"{disk}/lost-0: its folder was there and is gone, though {notes} notes its records up to"
        " 10; put it back from a backup or another replica"
    ]


@pytest.mark.slow
def test_a_missing_segment_is_a_finding_of_all_three(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    found = "offsets 10 to 19 are in no segment: a segment is missing"
    for topic in (OFFSETS, SHARES):
        shutil.copytree(log_dir / "plain-0", log_dir / f"{topic}-0")

    built = _build(log_dir, tmp_path / "tables")
    again = _build(log_dir, tmp_path / "tables")
    _, _, audited = _run("audit", "--source", log_dir)
    forecast = _run("recovery", "forecast", "--source", log_dir, "--rows", "findings")[2]

    logs = {f"{OFFSETS}-0", f"{SHARES}-0", "plain-0"}
    gaps = {row["path"]: row["message"] for row in audited if row["kind"] == "gap"}
    assert gaps == {f"{log_dir}/{name}/{LACKING}": found for name in logs}
    told = [row for row in forecast if row["message"] == found]
    of_start = {f"{SHARES}-0", "plain-0"}  # which counts no records
    assert {(row["folder"], row["file"]) for row in told} == {(name, LACKING) for name in of_start}
    assert built == again
    assert (built[0], len(built[1])) == (1, 1)
    assert built[1][0].startswith("3 such, e.g. ") and found in built[1][0]


@pytest.mark.slow
def test_a_search_knows_no_answer_that_a_missing_segment_may_have(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    why = "not known: offsets 10 to 19 are in no segment: a segment is missing"
    times = ("1005", "1015", "LATEST", "MAX_TIMESTAMP")
    asked = ("search", "--warehouse", tmp_path / "tables", *(f"--time={time}" for time in times))
    _build(log_dir, tmp_path / "tables")

    status, _, rows = _run(*asked)
    committed = _run(*asked, "--isolation-level", "read_committed")[2]
    alone, _, of_cleaned = _run(*asked, "--topic", "cleaned")

    def told(rows: list[dict[str, object]], topic: str) -> list[tuple[object, ...]]:
        of_topic = {row["question"]: row for row in rows if row["topic"] == topic}
        names = ("kafka_offset", "true_offset", "problem")
        return [tuple(of_topic[time][name] for name in names) for time in times]

    assert (status, alone) == (1, 0)
    assert told(rows, "plain") == [(5, 5, None), (20, None, why), (30, 30, None), (29, None, why)]
    assert told(committed, "plain") == [(5, 5, None), *[(None, None, why)] * 3]
    whole = [(5, 5, None), (20, 20, None), (30, 30, None), (29, 29, None)]
    assert told(of_cleaned, "cleaned") == told(committed, "cleaned") == whole


@pytest.mark.slow
def test_without_the_cleaners_checkpoint_it_may_have_been_compaction(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    (log_dir / "cleaner-offset-checkpoint").unlink()

    status, told = _build(log_dir, tmp_path / "tables")
    _, _, audited = _run("audit", "--source", log_dir)
    forecast = _run("recovery", "forecast", "--source", log_dir, "--rows", "findings")[2]

    found = "offsets 10 to 19 are in no segment: a segment is missing, or compaction removed"
    assert (status, len(told)) == (1, 1)
    assert told[0].startswith("2 such, e.g. ") and found in told[0]
    assert [found in row["message"] for row in audited if row["kind"] == "gap"] == [True, True]
    told = [row["consequence"] for row in forecast if found in str(row["message"])]
    assert told == ["not known", "not known"], forecast


@pytest.mark.slow
def test_a_log_without_its_end_is_a_finding_of_each_build(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    """Its high watermark lies behind its end; neither a log start there nor a segment's base is."""
    for name in ("plain-0", "cleaned-0"):
        (log_dir / name / LACKING).write_bytes(v2_batch(10, [(1000, b"k", b"v")] * 10))
    for name in ("deleted-0", "empty-0", "torn-0"):
        shutil.copytree(log_dir / "plain-0", log_dir / name)
    (log_dir / "plain-0" / f"{20:020d}.log").unlink()
    (log_dir / "empty-0" / f"{30:020d}.log").touch()
    torn = log_dir / "torn-0" / f"{20:020d}.log"
    torn.write_bytes(torn.read_bytes()[:-1])
    marks = ("plain 0 21", "deleted 0 40", "empty 0 30", "torn 0 30", "cleaned 0 30")
    _checkpoint(log_dir / "replication-offset-checkpoint", marks)
    _checkpoint(log_dir / "log-start-offset-checkpoint", ("deleted 0 40",))

    built = [
        _run("build", "--source", log_dir, "--warehouse", tmp_path / "tables") for _ in range(2)
    ]
    _checkpoint(log_dir / "replication-offset-checkpoint", ("plain 0 20", "torn 0 29"))
    sound = _run("build", "--source", log_dir, "--warehouse", tmp_path / "tables")

    said = (
        f"2 such, e.g. {log_dir}/plain-0/{10:020d}.log: the log ends at offset 20, below the high"
        " watermark 21 that is checkpointed for it: its last segments are missing or damaged; put"
        " it back from a backup or another replica"
    )
    for status, told, _ in built:
        assert (status, said in told) == (1, True), told
    assert (sound[0], "checkpointed" in sound[1]) == (0, False), sound[1]


def _checkpoint(file: Path, lines: tuple[str, ...]) -> None:
    file.write_text("\n".join(("0", str(len(lines)), *lines, "")))


@pytest.mark.slow
def test_a_log_that_lost_all_its_segments_is_told_by_all_that_ask_for_it(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    (log_dir / "replication-offset-checkpoint").write_text("0\n2\nlost-0 0 7\nplain 0 30\n")
    (log_dir / "lost-0-0").mkdir()
    (log_dir / "lost-0-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: MWJ6FHTfRYy67jzwZdeqSQ"
    )
    shutil.rmtree(log_dir / "cleaned-0")
    (log_dir / "plain-0" / LACKING).write_bytes(v2_batch(10, [(1000, b"k", b"v")] * 10))
    tables = ("--warehouse", tmp_path / "tables")

    status, told, _ = _run("build", "--source", log_dir, *tables)
    again = _run("build", "--source", log_dir, *tables)[0]

    assert (status, again) == (1, 1), told
    assert "1 files or folders not taken: table unrecognized_files" in told
    why = "not known: no segment of the log is there, though the high watermark 7 is checkpointed"
    for verb in (["retention"], ["roll"]):
        status, told, _ = _run(*verb, *tables, "--now-ms", 1_800_000_000_000)
        assert status == 1, verb
        assert f"1 log lacks its end. lost-0-0 in {log_dir}: {why}" in told, (verb, told)
    (found,) = [row for row in _run("audit", "--source", log_dir)[2] if row["kind"] == "gap"]
    assert found["path"] == f"{log_dir}/lost-0-0/{0:020d}.log"
    assert found["message"].endswith("notes its high watermark 7")
    page = tmp_path / "page.html"
    status, told, _ = _run("report", *tables, "--out", page)
    assert status == 1
    assert all(f"lost-0-0 in {log_dir}: {why}" in text for text in (told, page.read_text()))
    asked = ["search", "--time", 1000, "--time", "latest", *tables]
    status, told, rows = _run(*asked)
    found = [(row["kafka_offset"], row["problem"]) for row in rows if row["topic"] == "lost-0"]
    assert (status, len(found)) == (1, 2), told
    assert {(offset, text.partition(" for it")[0]) for offset, text in found} == {(None, why)}
    lines = ["search", "--time", "1000", *map(str, tables), "--output", "reset-offsets"]
    done = CliRunner().invoke(cli, lines)
    assert (done.exit_code, why in done.stderr) == (1, True), done.stderr
    assert [_run(*asked, "--topic", "plain")[0], _run("search", "--time", 1000, *tables)[0]] == [
        0,
        1,
    ]

    log = log_dir / "lost-0-0" / f"{0:020d}.log"
    log.write_bytes(v2_batch(0, [(1000, b"k", b"v")] * 7))
    assert _run("build", "--source", log_dir, *tables)[0] == 0
    assert "lacks its end" not in _run("retention", *tables)[1]
    assert _run("sql", *tables, "SELECT path FROM unrecognized_files")[2] == []
