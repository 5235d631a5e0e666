"""Verbs whose tables are large run with both of the JVM's compilers: they say so to the session."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.cli import cli
from kafka_segments.engine.tables.catalog import LOGS, RUNS, SEGMENTS

BY_TABLES = {
    "compact": "--dry-run",
    "migrate inventory": "",
    "report": "--out page.html",
    "retention decide": "",
    "retention plan": "",
    "roll": "",
    "search offsets": "--time now",
    "validate": "",
}


class _AskedError(BaseException):
    """The session was asked for; there is none."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether verbs asked for long sessions."""
    found: list[bool] = []

    @contextmanager
    def session(name: str, *, is_long: bool = False, **_: Any) -> Iterator[None]:
        found.append(is_long)
        raise _AskedError
        yield

    monkeypatch.setattr("kafka_segments.engine.spark.session.spark_session", session)
    return found


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """As much of tables as verbs look for before they ask for a session."""
    for table in (SEGMENTS, LOGS, RUNS):
        log = tmp_path / "warehouse" / table.name / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020d}.json").write_text('{"add": {}}\n')
    return tmp_path / "warehouse"


def _run(words: str, *options: object) -> None:
    with pytest.raises(_AskedError):
        cli([*words.split(), *map(str, options)], standalone_mode=False)


@pytest.mark.parametrize("is_much", [True, False])
@pytest.mark.parametrize("verb", BY_TABLES)
def test_verbs_over_large_tables_ask_for_long_sessions(
    verb: str, *, is_much: bool, asked: list[bool], warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_segments.engine.tables.sizes.holds_much", lambda _: is_much)

    _run(verb, *BY_TABLES[verb].split(), "--warehouse", warehouse)

    assert asked == [is_much]
