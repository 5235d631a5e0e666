"""Copies of a warehouse in which one file, drawn by its kind, is spoilt or taken away."""

import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from deltalake import DeltaTable

KINDS = {
    "commit": "_delta_log/*.json",
    "newest commit": "_delta_log/*.json",
    "newest commits": "_delta_log/*.json",
    "checkpoint": "_delta_log/*.checkpoint.parquet",
    "last checkpoint": "_delta_log/_last_checkpoint",
    "data": "*.parquet",
    "log": "_delta_log",
    "folder": ".",
    "notes": "../_versions.json",
}
"""What a table's files are, and where they lie, as a path from its folder."""
HARMS: dict[str, Callable[[bytes], bytes] | None] = {
    "empty": lambda _: b"",
    "half": lambda data: data[: len(data) // 2],
    "a line": lambda data: data.splitlines(keepends=True)[0],
    "nul": lambda data: bytes(len(data)),
    "gone": None,
}
"""What is done to a file's bytes; None: it is taken away."""
MORE_HARMS = (*HARMS, "another", "folder")
"""And: the first file of its kind in its place, or a folder."""
_GONE = ("newest commits", "log", "folder")
"""Kinds that are taken away, more than one file."""


class Break(NamedTuple):
    """Files of a table, as paths from its folder, and what is done to them."""

    table: str
    files: tuple[str, ...]
    harm: str


def tables_of(warehouse: Path) -> list[str]:
    """Name the tables of a warehouse."""
    return sorted(log.parent.name for log in warehouse.glob("*/_delta_log"))


def add_checkpoints(warehouse: Path, draw: random.Random) -> None:
    """Write a checkpoint for half of the tables, of their newest version."""
    tables = tables_of(warehouse)
    for table in draw.sample(tables, len(tables) // 2):
        DeltaTable(str(warehouse / table)).create_checkpoint()


def draw_break(
    warehouse: Path,
    kind: str,
    table: str,
    draw: random.Random,
    harms: Sequence[str] = tuple(HARMS),
) -> Break | None:
    """Draw a file of a kind from a table; None: it has none."""
    files = _files(warehouse / table, kind)
    if not files:
        return None
    if kind == "newest commits":
        found = tuple(files[-draw.randint(1, len(files)) :])
    else:
        found = (files[-1] if kind == "newest commit" else draw.choice(files),)
    return Break(table, found, "gone" if kind in _GONE else draw.choice(harms))


def broken_copy(warehouse: Path, copy: Path, broken: Break | None) -> Path:
    """Copy a warehouse, and break the copy; None: nothing of it."""
    shutil.copytree(warehouse, copy)
    if broken is None:
        return copy
    for name in broken.files:
        file, harm = copy / broken.table / name, HARMS.get(broken.harm)
        if broken.harm == "folder":
            file.unlink()
            file.mkdir()
        elif broken.harm == "another":
            file.write_bytes(min(file.parent.glob(f"*{file.suffix}")).read_bytes())
        elif harm is not None:
            file.write_bytes(harm(file.read_bytes()))
        elif file.is_dir():
            shutil.rmtree(file)
        else:
            file.unlink()
    return copy


def _files(table: Path, kind: str) -> list[str]:
    if kind == "folder":
        return ["."]
    place, _, name = KINDS[kind].rpartition("/")
    return sorted(os.path.join(place, file.name) for file in (table / place).glob(name))
