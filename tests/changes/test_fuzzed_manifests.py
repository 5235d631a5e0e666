"""Manifests and rows of plans with drawn faults: what is not named and what is not kept stays.

Kits have a test of their own, ``tests/recovery/test_fuzzed_manifests.py``.
"""

import os
import random
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafka_segments.errors import SetAsideError, UsageError
from kafka_segments.files.changes.kept_files import KeptFiles
from kafka_segments.files.changes.set_aside import files_of_segments, set_aside
from kafka_segments.kafka.text.names import LOG_SUFFIX, file_name
from kafka_segments.verbs.change.compact.folder_compactor import FolderCompactor
from kafka_segments.verbs.change.compact.run import UndoOptions, run_undo
from kafka_segments.verbs.change.migrate.planned_log import staged_log
from kafka_segments.verbs.change.migrate.planned_rows import planned_segment
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules
from kafka_segments.verbs.change.migrate.staged_log import (
    check_put_back,
    check_put_in_place,
    put_back,
    put_in_place,
)
from kafka_segments.verbs.change.migrate.steps.log_staging import LogToStage, finish_log
from kafka_segments.verbs.change.migrate.steps.segment_staging import SegmentStager
from kafka_segments.verbs.judge.retention.planned_log import PlannedLog, moved
from support.verbs.drawn_manifests import (
    digests_below,
    put_link,
    sha256,
    spoil_manifest,
    spoilt,
    state_of,
)

ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "20"))
RULES = MigrationRules()
PLAN = {"plan_id": "p", "cluster": "c", "broker_id": 1, "topic": "t", "partition": 0}
Row = dict[str, Any]


class Case(NamedTuple):
    """What is fuzzed: made in a folder, with the rows of its plan; then two runs."""

    make: Callable[[Path, Path], list[Row]]
    act: Callable[[Path, list[Row]], None]
    spoils_rows: bool = False


def _segments(at: Path, *, name: str = "t-0") -> Path:
    """Make a log of three segments and what lies beside them, each file with other bytes."""
    folder = at / "logs" / name
    folder.mkdir(parents=True)
    for base in (0, 10, 20):
        for suffix in (".log", ".index", ".timeindex"):
            path = folder / file_name(base, suffix)
            path.write_bytes(f"{name} {base} {suffix} ".encode() * 20)
            os.utime(path, ns=(5, 1_600_000_000_000_000_000 + base))
    (folder / "leader-epoch-checkpoint").write_text(f"0\n1\n{len(name)} 0\n")
    return folder


def _made(at: Path) -> None:
    (at / "outside" / "v-0").mkdir(parents=True)
    (at / "outside" / "file").write_text("must stay")
    (at / "outside" / "v-0" / f"{0:020d}.index").write_text("must stay, too")
    _segments(at, name="u-0")


def _compacted(at: Path, _: Path) -> list[Row]:
    """Compact index files; the run has a file that it trimmed and two that it removed."""
    folder = _segments(at)
    (folder / file_name(0, ".index")).write_bytes(
        b"".join(n.to_bytes(4, "big") * 2 for n in range(1, 9)) + bytes(80)
    )
    for name in (f"{5:020d}.index", f"{6:020d}.log.deleted"):
        (folder / name).write_text(f"left over {name}")
    FolderCompactor(str(at / "logs"), KeptFiles(str(at / "kept" / "run")), None).compact(
        str(folder)
    )
    return []


def _undo(at: Path, _: list[Row]) -> None:
    options = UndoOptions(str(at / "warehouse"), str(at / "kept"), "run")
    for _again in range(2):
        with suppress(UsageError, SetAsideError):
            run_undo(options)


def _retention_rows(folder: Path) -> list[Row]:
    return [
        {
            **{**PLAN, "log_dir": str(folder.parent), "base_offset": base},
            "path": str(folder / file_name(base, LOG_SUFFIX)),
            **{"problem": None, "size_bytes": 1},
            "digests": None,
            "files": [
                {"name": file.name, "size_bytes": file.size_bytes, "mtime_ns": file.mtime_ns}
                for file in files_of_segments(folder, [base])
            ],
        }
        for base in (0, 10)
    ]


def _planned(at: Path, _: Path) -> list[Row]:
    return _retention_rows(_segments(at))


def _set_aside(at: Path, _: Path) -> list[Row]:
    """Move two segments away, and the last two files back: a run that was killed."""
    folder, aside = _segments(at), at / "logs.set-aside" / "p" / "t-0"
    rows = _retention_rows(folder)
    set_aside(folder, aside, files_of_segments(folder, (0, 10)))
    for name in (file_name(10, ".timeindex"), file_name(10, ".log")):
        (aside / name).rename(folder / name)
    return rows


def _move(step: Callable[..., Any]) -> Callable[[Path, list[Row]], None]:
    def act(_: Path, rows: list[Row]) -> None:
        for execute in (False, True):
            moved(rows, None, partial(step, execute=execute), None)

    return act


def _log_row(rows: list[Row]) -> Row:
    return {**rows[0], "folder": os.path.dirname(str(rows[0]["path"]))}


def _migration_rows(at: Path, synthetic: Path) -> list[Row]:
    folder = at / "logs" / "t-0"
    shutil.copytree(synthetic / "v2-txn-interleaved-multi-segment" / "t-0", folder)
    paths = sorted(folder.glob("*.log"))
    bases = [int(path.stem) for path in paths]
    return [
        {
            **{**PLAN, "log_dir": str(at / "logs"), "root": str(at / "logs.migration" / "p")},
            **{"base_offset": base, "next_base_offset": following, "path": str(path)},
            **{"size_bytes": path.stat().st_size, "mtime_ns": path.stat().st_mtime_ns},
            **{"action": "indexes", "cut_bytes": 0, "log_start_offset": 0, "topic_id": None},
            "rules": RULES.text,
        }
        for path, base, following in zip(paths, bases, [*bases[1:], None], strict=True)
    ]


_stager = cache(SegmentStager)


def _stage_parts(rows: Iterable[Row]) -> None:
    for row in rows:
        segment = planned_segment(row)
        _stager(MigrationRules.of(row["rules"])).stage(segment)


def _finish(rows: list[Row]) -> None:
    segments = [planned_segment(row) for row in rows]
    first = rows[0]
    log = LogToStage(segments, first["log_start_offset"], 0, first["topic_id"])
    finish_log(log, MigrationRules.of(first["rules"]))


def _half_staged(at: Path, synthetic: Path) -> list[Row]:
    rows = _migration_rows(at, synthetic)
    _stage_parts(rows)
    return rows


def _staged(at: Path, synthetic: Path) -> list[Row]:
    rows = _half_staged(at, synthetic)
    _finish(rows)
    return rows


def _migrated(at: Path, synthetic: Path) -> list[Row]:
    rows = _staged(at, synthetic)
    put_in_place(staged_log(_log_row(rows)))
    return rows


def _stage(_: Path, rows: list[Row]) -> None:
    with suppress(SetAsideError, OSError):
        _stage_parts(rows)
        _finish(rows)
    _apply(_, rows)


def _apply(_: Path, rows: list[Row]) -> None:
    with suppress(SetAsideError, OSError):
        log = staged_log(_log_row(rows))
        check_put_in_place(log)
        put_in_place(log)


def _roll_back(_: Path, rows: list[Row]) -> None:
    with suppress(SetAsideError, OSError):
        log = staged_log(_log_row(rows))
        check_put_back(log, discard=False)
        put_back(log, discard=False)


CASES = {
    "compact --undo": Case(_compacted, _undo),
    "retention apply again": Case(_set_aside, _move(PlannedLog.apply)),
    "retention rollback": Case(_set_aside, _move(PlannedLog.roll_back)),
    "migrate stage again": Case(_half_staged, _stage),
    "migrate apply": Case(_staged, _apply),
    "migrate rollback": Case(_migrated, _roll_back),
    "rows, retention apply": Case(_planned, _move(PlannedLog.apply), True),
    "rows, retention rollback": Case(_set_aside, _move(PlannedLog.roll_back), True),
    "rows, migrate stage": Case(_migration_rows, _stage, True),
    "rows, migrate apply": Case(_staged, _apply, True),
    "rows, migrate rollback": Case(_migrated, _roll_back, True),
}


def _fault(at: Path, rows: list[Row], draw: random.Random, *, spoils_rows: bool) -> list[Row]:
    """Spoil a manifest or a row, or put a link in the place of a file or folder."""
    elsewhere = sorted([*map(str, at.rglob("*")), *digests_below(at)])
    if draw.random() < 0.2:
        below = [path for path in at.rglob("*") if path.parent != at]
        named = [path for path in sorted(below) if "outside" not in path.parts]
        put_link(draw.choice(named), at / "outside")
        return rows
    if spoils_rows:
        place = draw.randrange(len(rows))
        spoilt_row = spoilt(rows[place], draw, elsewhere)
        if spoilt_row.keys() != rows[place].keys() or not _is_typed(spoilt_row):
            return rows
        return [*rows[:place], spoilt_row, *rows[place + 1 :]]
    manifests = [path for path in at.rglob("*.json*") if "outside" not in path.parts]
    spoil_manifest(draw.choice(sorted(manifests)), draw, elsewhere)
    return rows


def _is_typed(row: Row) -> bool:
    """Tell whether a table can hold a row: its columns have types, and keys are not null."""
    longs = ("base_offset", "size_bytes", "mtime_ns", "partition", "log_start_offset")
    texts = ("plan_id", "log_dir", "topic", "path", "root", "action", "rules")
    files = row.get("files", [])
    return (
        all(_is_long(row[name]) for name in longs if name in row)
        and all(isinstance(row[name], str) for name in texts if name in row)
        and all(_is_long(row.get(name) or 0) for name in ("next_base_offset", "cut_bytes"))
        and isinstance(row.get("topic_id"), str | None)
        and row.get("digests") in (None, {})
        and isinstance(row.get("problem"), str | None)
        and isinstance(files, list)
        and all(isinstance(file, dict) and len(file) == 3 for file in files)
        and all(isinstance(file["name"], str) for file in files)
        and all(_is_long(file[name]) for file in files for name in ("size_bytes", "mtime_ns"))
    )


def _is_long(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_drawn_fault_loses_nothing_and_reaches_nothing_else(
    case: Case, seed: int, synthetic: Path, memory_folder: Path
) -> None:
    at, made = memory_folder / "at", memory_folder / "made"
    _made(at)
    plan = case.make(at, synthetic)
    first = {path: sha256(data) for path, (data, _) in state_of(at).items()}
    at.rename(made)
    for number in range(ROUNDS):
        draw = random.Random(f"{seed} {number}")
        shutil.copytree(made, at, symlinks=True)
        rows = _fault(at, plan, draw, spoils_rows=case.spoils_rows)
        untouched = [at / "outside", at / "logs" / "u-0"]
        before = [state_of(folder) for folder in untouched]

        case.act(at, rows)

        assert [state_of(folder) for folder in untouched] == before, number
        there = digests_below(at)
        lost = {path for path, digest in first.items() if digest not in there}
        assert not {path for path in lost if not _is_replaced(path)}, number
        shutil.rmtree(at)


def _is_replaced(path: str) -> bool:
    """Tell whether a run may remove a file for good: its own notes, and what can be made again."""
    return path.endswith((".json", ".jsonl", f"{0:020d}.index")) and not path.startswith("outside")
