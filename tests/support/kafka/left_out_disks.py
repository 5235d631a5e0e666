"""A cluster's disks of which parts are left out, each time as a cluster of its own.

Many such clusters are built into one warehouse, and a verb answers for all of them at once: that
costs little more than one. What it says of a part is held against what it says of the whole.
"""

import json
import random
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

WHOLE = "whole"
NODES = (1, 2, 3)
KINDS = ("folders", "internal", "replicas", "partitions", "node")
_PLACES = {"cluster", "broker_id", "log_dir", "path", "file", "run_id"}
_NOT_THERE = "log not in the tables"
_NOT_KNOWN, _NO_METADATA = "not known", "has no metadata of it"


Rows = Mapping[tuple[Any, ...], list[dict[str, Any]]]


class Answers(NamedTuple):
    """What a verb says: its rows by cluster and key, and the lines on stderr."""

    rows: Mapping[str, Rows]
    lines: list[str]


def lay_out(disks: Path, folder: Path, seed: str, numbers: Sequence[int]) -> dict[str, list[str]]:
    """Copy the disks of a cluster, whole and with drawn parts left out; say what, by cluster."""
    left_out = {WHOLE: _copied(disks, folder, WHOLE, random.Random(0), "nothing")}
    for number in numbers:
        name, rng = f"part-{number}", random.Random(f"{seed} {number}")
        left_out[name] = _copied(disks, folder, name, rng, KINDS[number % len(KINDS)])
    return left_out


def _copied(disks: Path, folder: Path, name: str, rng: random.Random, kind: str) -> list[str]:
    nodes = [folder / f"{name}-node-{node}" for node in NODES]
    for node, copy in zip(NODES, nodes, strict=True):
        shutil.copytree(
            disks / f"node-{node}", copy, ignore=shutil.ignore_patterns("*-delete", ".lock")
        )
    log_dirs = [log_dir for node in nodes for log_dir in sorted(node.iterdir())]
    for log_dir in log_dirs:
        meta = log_dir / "meta.properties"
        lines = [line for line in meta.read_text().split("\n") if "cluster.id=" not in line]
        meta.write_text("\n".join([f"cluster.id={name}", *lines]))
    gone = _drawn(rng, kind, log_dirs)
    for path in gone:
        shutil.rmtree(path)
    return [str(path.relative_to(folder)) for path in gone]


def _drawn(rng: random.Random, kind: str, log_dirs: list[Path]) -> list[Path]:
    """Draw the folders that are left out."""
    logs = [log for one in log_dirs for log in sorted(one.glob("*-*")) if log.is_dir()]
    logs = [log for log in logs if any(log.glob("*.log"))]
    names = sorted({log.name for log in logs})
    internal = [name for name in names if name.startswith("__")]
    match kind:
        case "folders":
            return rng.sample(log_dirs, rng.randint(1, 4))
        case "node":
            gone = rng.choice(log_dirs).parent
            return [one for one in log_dirs if one.parent == gone]
        case "replicas":
            return rng.sample(logs, rng.randint(1, 12))
        case "partitions":
            chosen = rng.sample(names, rng.randint(1, 6))
            return [log for log in logs if log.name in chosen]
        case "internal":
            chosen = rng.sample(internal, rng.randint(1, 4))
            return [log for log in logs if log.name in chosen and rng.random() < 0.75]
    return []


def answers_of(out: str, err: str, key: Sequence[str]) -> Answers:
    """Read what a verb printed: JSON lines, and lines on stderr."""
    lines: dict[str, list[str]] = {}
    for line in out.splitlines():
        lines.setdefault(json.loads(line)["cluster"], []).append(line)
    return Answers({name: rows_by_key(of, key) for name, of in lines.items()}, err.splitlines())


def rows_by_key(lines: Iterable[str], key: Sequence[str]) -> Rows:
    """Read JSON lines."""
    rows: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in map(json.loads, lines):
        rows.setdefault(tuple(row[name] for name in key), []).append(row)
    return rows


def contradictions(
    answers: Answers, left_out: Mapping[str, list[str]], *, is_of_logs: bool
) -> Iterator[str]:
    """Yield what is said of a part and denied by the whole, and what is passed over.

    A row says what one of the whole's says, or that it is not known; without metadata a line says
    that nothing is taken from there. Where a row is missing, a line says of the cluster what was
    not read; ``is_of_logs``: not there, as the rows are of the logs that were read.
    """
    whole = answers.rows[WHOLE]
    for name, gone in left_out.items():
        own = [line for line in answers.lines if f"cluster {name}: " in line]
        if name == WHOLE or any(_NO_METADATA in line for line in own):
            continue
        part = answers.rows.get(name, {})
        for key, rows in part.items():
            said = [_facts(row) for row in whole.get(key, ())]
            for row in rows:
                if _facts(row) not in said and not _is_not_known(row):
                    yield f"{name} without {gone}: {key}: {_facts(row)}, whole: {said}"
        told = any(_NOT_KNOWN in line for line in own)
        passed_over = sorted(map(str, whole.keys() - part.keys()))
        if passed_over and not told and not is_of_logs:
            yield f"{name} without {gone}: passed over {passed_over}"


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _PLACES}


def _is_not_known(row: Mapping[str, Any]) -> bool:
    return _NOT_THERE in (row.get("status"), row.get("problem")) or _NOT_KNOWN in json.dumps(row)
