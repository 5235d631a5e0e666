"""What can be refused before Spark starts, and before anything large is imported.

A session takes seconds; a path that is not there takes none.
"""

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click

from kafka_segments.console.json_log import ERROR
from kafka_segments.console.lines import say
from kafka_segments.engine.spark.jars import require_named_jars
from kafka_segments.engine.spark.java import require_java
from kafka_segments.engine.tables.missing import missing_plan, missing_table, missing_tables
from kafka_segments.errors import (
    OUTAGE,
    KafkaSegmentsError,
    OutageError,
    SourceError,
    UsageError,
    is_answerless,
)
from kafka_segments.files.storage.outages import is_outage
from kafka_segments.files.storage.permissions import is_forbidden, permission_step
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.files.storage.uris import join_uri, misread_uri, scheme_of

ANY_TABLE = "*"
_FLAGS_OF_SETTINGS = ("index_interval_bytes", "segment_index_bytes")
_LOG = "_delta_log"
_SEGMENTS, _RUNS = "segments", "runs"
_MADE = 0  # the version of a table that has no rows yet
_MOST_PLAN_BYTES = 64 * 1024 * 1024


class Refused(click.ClickException):
    """What a verb refuses before it starts: one line, in the form of its other errors."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print the line on stderr."""
        del file
        say(f"kafka-segments: {self.message}", level=ERROR, exit_status=self.exit_code)


class _Unanswered(Refused):
    """What failed before the verb started, and is to be tried again."""

    exit_code = 3


def refusal(error: KafkaSegmentsError) -> Refused:
    """Return what an error refuses; the exit status of an outage is that of a failure."""
    return (_Unanswered if is_answerless(error) else Refused)(str(error))


def check_before_session(
    options: Mapping[str, Any], *, reads: Sequence[str], needs_spark: bool = True
) -> None:
    """Refuse settings, sources, a warehouse and a Java that cannot be meant or are not there.

    ``options``: a verb's, by parameter. ``reads``: the tables that the verb cannot do without.

    Raises:
        Refused: one of them is wrong.
    """
    try:
        if "pairs" in options:
            from kafka_segments.settings import Settings  # noqa: PLC0415

            flags = {flag: options.get(flag) for flag in _FLAGS_OF_SETTINGS}
            Settings.load(options.get("conf"), options["pairs"], **flags)
        for source in (*(options.get("sources") or ()), *(options.get("mirrors") or ())):
            require_source(source)
        for name in ("warehouse", "to_warehouse"):
            if options.get(name) is not None:
                require_tables(options[name], reads)
        if needs_spark and not _has_session():
            require_java()
            require_named_jars()
    except (UsageError, OutageError) as error:
        raise refusal(error) from None


def require_source(text: str) -> None:
    """Refuse a local source that cannot be listed; what lies elsewhere is not asked for here.

    Raises:
        SourceError: it is not there, is no folder or may not be read.
    """
    folder = local_path(text)
    if folder is None:
        return
    try:
        with os.scandir(folder) as names:
            next(names, None)
    except OSError as error:
        raise SourceError(str(folder), _in_words(error, folder)) from None


def require_output(option: str, text: str, *, is_file: bool) -> None:
    """Refuse a local place that a result cannot be written to; others say it at the first write.

    A folder and those above it are made by the verbs; those above a file have to be there.

    Raises:
        UsageError: a folder is in a file's place or the other way round, a file's folder is not
            there, or this user cannot write.
        OutageError: its file system does not answer.
    """
    target = local_path(text)
    if target is None:
        return
    try:
        folder = target.parent if is_file else target
        if target.exists() and target.is_dir() == is_file:
            there, needed = ("folder", "file") if is_file else ("file", "folder")
            raise UsageError(f"{option} {target} is a {there}: the name of a {needed} expected")
        while not (is_file or os.path.lexists(folder)):
            folder = folder.parent
        if is_file and not os.path.lexists(folder):
            raise UsageError(f"{option} {target}: folder {folder} is not there, make it first")
        if not folder.is_dir():
            raise UsageError(f"{option} {target}: {folder} is no folder, name another place")
    except OSError as error:
        if is_outage(error):
            raise OutageError(f"{option} {target}", str(error)) from None
        raise UsageError(f"{option} {target} cannot be written: {error}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            f"{option} {target} cannot be written: folder {folder} is read-only, or not this"
            " user's; make it writable, or name another place"
        )


def require_tables(text: str, names: Sequence[str]) -> None:
    """Refuse a warehouse that has not the tables that are read.

    Raises:
        UsageError: it is not there, is no folder of tables, or one of the tables is missing.
        BrokenTableError: one of the tables has no log any more, and was not moved away.
    """
    if not names:
        return
    root = local_path(text)
    if root is None:
        _require_stored_tables(text, names)
        return
    if not root.is_dir():
        there = "is a file, no folder" if root.exists() else "is not there"
        raise UsageError(
            f"{root} {there}: --warehouse is the folder of the tables that `kafka-segments build`"
            " made"
        )
    if _has_commit(root):
        raise UsageError(
            f"{root} is one table: --warehouse is the folder above it, which holds them all"
        )
    if ANY_TABLE in names:
        if not any(_has_commit(folder) for folder in root.iterdir() if folder.is_dir()):
            raise UsageError(missing_tables(str(root)))
        _require_ended_build(root, (_SEGMENTS,))
        return
    for name in names:
        if not _has_commit(root / name):
            _require_stored_tables(str(root), (name,))
    _require_ended_build(root, names)


def _require_ended_build(root: Path, names: Sequence[str]) -> None:
    """Refuse tables that the first build of a warehouse made and did not end: they may be empty.

    Raises:
        UsageError: no build has ended there.
    """
    runs = root / _RUNS
    if _SEGMENTS not in names or not _has_commit(runs) or next(runs.glob("*.parquet"), None):
        return
    if any(b'"add"' in commit.read_bytes() for commit in (runs / _LOG).glob("*.json")):
        return  # runs were there, which somebody deleted
    raise UsageError(_no_build_has_ended(root))


def _no_build_has_ended(root: object) -> str:
    return (
        f"{root}: no build has ended there, so that its tables are empty or not whole: run"
        " `kafka-segments build` again"
    )


def require_plan(warehouse: str, table: str, plan_id: str) -> None:
    """Refuse a plan that its table has no row of; a large table is left to the run.

    Raises:
        UsageError: there is no such plan.
    """
    from kafka_segments.files.delta.rows import read_small_table  # noqa: PLC0415

    rows = read_small_table(
        join_uri(warehouse, table), (), most_bytes=_MOST_PLAN_BYTES, where=("plan_id", plan_id)
    )
    if rows == []:
        raise UsageError(missing_plan(warehouse, table, plan_id))


def _require_stored_tables(text: str, names: Sequence[str]) -> None:
    from kafka_segments.files.delta.health import version_if_there  # noqa: PLC0415
    from kafka_segments.files.delta.log import last_version  # noqa: PLC0415

    root = absolute_uri(text)
    for name in names:
        if name != ANY_TABLE and version_if_there(join_uri(root, name)) is None:
            raise UsageError(missing_table(root, name))
    if _SEGMENTS in names and last_version(join_uri(root, _RUNS)) == _MADE:
        raise UsageError(_no_build_has_ended(root))


def local_path(text: str) -> Path | None:
    """Return the absolute path that a user meant, None where it lies in a store.

    What is no path at all is left to ``absolute_uri``, which says why.
    """
    if not text or "\0" in text or misread_uri(text):
        return None
    if not scheme_of(text):
        return Path(os.path.abspath(os.path.expanduser(text)))
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return Path(os.path.abspath(unquote(parts.path)))


def _has_commit(table: Path) -> bool:
    try:
        with os.scandir(table / _LOG) as names:
            return any(name.name.endswith(".json") and name.name[:20].isdigit() for name in names)
    except OSError:
        return False


def _in_words(error: OSError, folder: Path) -> str:
    if is_forbidden(error):
        return f"{error}; {permission_step(error)}"
    if is_outage(error):
        return f"{error}; {OUTAGE}"
    if error.errno == errno.ENOTDIR and folder.exists():
        return _why_file(folder)
    if error.errno != errno.ENOENT:
        return str(error)
    there = folder.parent
    while not there.exists():
        there = there.parent
    return f"{error}; of that path {there} is there" if there != folder.parent else str(error)


def _why_file(path: Path) -> str:
    from kafka_segments.kafka.broker_rules.foreign_files import foreign_file  # noqa: PLC0415

    foreign = foreign_file(path.parent.name, path.name)
    if foreign is None:
        return "it is a file: give the folder that it lies in"
    return f"it is a file ({foreign.what}): {foreign.step}"


def _has_session() -> bool:
    """Tell whether a session runs already, as in a notebook, a test or the shell."""
    if "pyspark.sql" not in sys.modules:
        return False
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from kafka_segments.engine.workarounds.jvm import has_jvm  # noqa: PLC0415

    # Of the JVM's threads, only those that have used the session know it.
    return has_jvm() or SparkSession.getActiveSession() is not None
