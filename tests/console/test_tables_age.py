"""How old the tables are is said of answers of now, and of a moment since they were built."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kafka_segments.console.as_built import say_builds, tell_age, tell_records
from kafka_segments.console.not_known import noting
from kafka_segments.engine.derived import as_built, internal_files
from kafka_segments.engine.tables.missing import missing_name
from kafka_segments.files.delta.table_versions import mark_taken_back
from support.spark.connect_client import Done, run_verb
from support.spark.ready_builds import LentBuild, ReadyBuild

NOW_MS = "1800003600000"


def _found(builds_ms: list[int]) -> Callable[..., as_built.AsBuilt]:
    return lambda *_: as_built.AsBuilt(builds_ms, (), ())


@pytest.mark.parametrize(
    ("builds_ms", "asked", "said"),
    [
        ([5_000, 7_000], {"now_ms": 8_000}, "the oldest 3.000 s before: what changed since does"),
        ([5_000, 7_000], {"now_ms": 8_000, "at_ms": 6_000}, "the oldest 1.000 s before: what"),
        ([5_000, 7_000], {"now_ms": 8_000, "at_ms": 5_000}, None),
        ([5_000], {"now_ms": None}, None),
        ([], {"now_ms": 8_000, "at_ms": 6_000}, "how old the tables are is not known"),
    ],
)
def test_an_answer_of_a_moment_before_all_builds_alone_says_no_age(
    builds_ms: list[int],
    asked: dict[str, int | None],
    said: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    warehouse: Any = None
    monkeypatch.setattr(as_built, "read_age", _found(builds_ms))

    tell_age(warehouse, **asked)

    told = capsys.readouterr().err
    assert said in told if said else not told


@pytest.mark.parametrize(
    ("newest_ms", "now_ms", "said"),
    [
        ([5_000], 8_000, "were read up to 1970-01-01 00:00:05 UTC, 3.000 s before: what"),
        ([7_000, 5_000], 8_000, "were read up to 1970-01-01 00:00:05 UTC, 3.000 s before"),
        ([5_000], 5_000, None),
        ([], 8_000, None),
    ],
)
def test_of_an_internal_topic_it_is_said_up_to_when_it_was_read(
    newest_ms: list[int],
    now_ms: int,
    said: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    warehouse: Any = None
    monkeypatch.setattr(internal_files, "newest_records_ms", lambda *_: newest_ms)

    tell_records(warehouse, "__consumer_offsets", now_ms=now_ms)

    told = capsys.readouterr().err
    assert f"records of __consumer_offsets {said}" in told if said else not told


def test_tables_that_tell_of_no_build_have_no_known_age(capsys: pytest.CaptureFixture[str]) -> None:
    with noting() as not_known:
        say_builds([], now_ms=8_000)

    assert not_known == ["how old the tables are is not known: they tell of no build"]
    assert capsys.readouterr().err == f"{not_known[0]}\n"


def _retention(built: ReadyBuild) -> Done:
    words = ["retention", "--dry-run", "--warehouse", str(built.warehouse), "--now-ms", NOW_MS]
    return run_verb([*words, "--output", "json"])


def test_what_somebody_took_back_of_the_tables_is_said_until_all_sources_are_built_again(
    spark: SparkSession, lent_build: LentBuild, tmp_path: Path
) -> None:
    built = lent_build.lend(tmp_path / "warehouse")
    sound = _retention(built)
    DeltaTable(str(built.warehouse / "segments")).delete("partition = 0")
    altered = [_retention(built)]
    absent = missing_name(str(built.warehouse), "segments of topic", "t", ())
    mark_taken_back(str(built.warehouse), ("segments",))  # as a build of another source does
    altered.append(_retention(built))

    again = ["build", "--source", str(built.logs), "--warehouse", str(built.warehouse)]
    mended = run_verb([*again, "--now-ms", NOW_MS])
    last = _retention(built)

    assert "taken back" not in sound.err
    assert ". But table segments: rows were taken back by DELETE in version " in absent
    for done in altered:
        assert done.status == 1
        assert done.err.count("table segments: rows were taken back by DELETE in version ") == 1
        assert "`kafka-segments build` of each source makes the tables whole" in done.err
    assert mended.status == 1
    assert (last.status, last.out.count("\n")) == (sound.status, sound.out.count("\n"))
    assert "taken back" not in last.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("report", "--out", "{folder}/page.html"), ("validate", "--dry-run")], ids=" ".join
)
def test_what_tells_of_the_tables_alone_says_of_which_builds_they_are(
    spark: SparkSession, broker_build: ReadyBuild, tmp_path: Path, words: tuple[str, ...]
) -> None:
    called = [word.format(folder=tmp_path) for word in words]

    done = run_verb([*called, "--warehouse", str(broker_build.warehouse), "--now-ms", NOW_MS])

    assert done.status in (0, 1)
    assert "the tables are of the build of 2027-01-15 08:00:00 UTC, 1 h 0 min before" in done.err
