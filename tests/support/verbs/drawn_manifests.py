"""Draw faults of manifests and of rows of plans, and look at what a run left of files.

A fault changes one name, number or type, or puts a link in the place of a file or folder. Most of
the time a manifest's digest fits afterwards: who changes it on purpose makes a new one.
"""

import copy
import hashlib
import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kafka_segments.files.changes.manifests import signed

HOSTILE = (
    *("../x", "../../x", "/etc/hosts", "", ".", "..", "a\0b", "a\nother 1 9", "x", "\x1b[2J"),
    *("partition.metadata", "manifest.json", "convert", "cut"),
    *(f"{0:020d}.log", f"{0:020d}.index", f"{10:020d}.log", "other", "t-0", "u-0", "../u-0"),
    *(-1, 0, 1, 5, 2**31, 2**63 - 1, 2**63, 10**30, 1.5, True, None, [], {}, [1], ["x"], {"x": 1}),
)  # fmt: skip
State = dict[str, tuple[bytes, int]]


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value in what JSON holds, as keys and indexes."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, below in entries:
        yield (*path, key)
        if isinstance(below, dict | list):
            yield from places_in(below, (*path, key))


def spoilt(content: Any, draw: random.Random, others: Sequence[Any] = ()) -> Any:
    """Return what JSON holds with one thing changed; ``others``: more values to put there."""
    content = copy.deepcopy(content)
    *above, key = draw.choice(list(places_in(content)))
    holder = content
    for each in above:
        holder = holder[each]
    how = draw.choice(["value", "value", "value", "near", "remove", "add", "double"])
    if how == "near" and type(holder[key]) is int:
        holder[key] += draw.choice([-1, 1, 7, 4096])
    elif how == "near" and isinstance(holder[key], str):
        holder[key] = draw.choice(["{}/../x", "{}x", "/{}", "{}/", "./{}"]).format(holder[key])
    elif how == "remove":
        del holder[key]
    elif how == "add" and isinstance(holder, dict):
        holder["more"] = draw.choice(HOSTILE)
    elif how == "double" and isinstance(holder, list):
        holder.append(holder[key])
    else:
        holder[key] = draw.choice([*HOSTILE, *others])
    return content


def spoil_manifest(path: Path, draw: random.Random, others: Sequence[Any] = ()) -> None:
    """Change one thing in a manifest, or in a line of one."""
    is_lines = path.suffix == ".jsonl"
    lines = path.read_text().splitlines() if is_lines else [path.read_text()]
    place = draw.randrange(len(lines))
    content = spoilt(json.loads(lines[place]), draw, others)
    if draw.random() < 0.8:
        content.pop("digest", None)
        lines[place] = signed(content, indent=None).decode()
    else:
        lines[place] = json.dumps(content)
    path.write_text("\n".join(lines))


def put_link(path: Path, outside: Path) -> None:
    """Put a link in the place of a file or folder, which moves to a folder that nobody names."""
    path.rename(outside / "moved")
    path.symlink_to(outside / "moved")


def state_of(folder: Path) -> State:
    """Return bytes and mtime of all files below a folder, by their paths; of links, the target."""
    return {
        str(path.relative_to(folder)): (
            os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes(),
            path.lstat().st_mtime_ns,
        )
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def digests_below(folder: Path) -> set[str]:
    """Return the SHA-256 of each file below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {sha256(path.read_bytes()) for path in files}


def sha256(data: bytes) -> str:
    """Return a SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()
