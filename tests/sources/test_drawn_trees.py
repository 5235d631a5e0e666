"""Drawn trees with odd names, links and folders that cannot be listed, beside a plain walk."""

import os
import random
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import SEED
from kafka_segments.files.folders.listing_rows import Listed
from kafka_segments.files.folders.walk import walk_folders

HASH = "0123456789abcdef0123456789abcdef"
FILES = (
    *(b"%020d.%s" % (base, suffix) for base in (0, 5, 70) for suffix in (b"log", b"index")),
    *(b"%020d.timeindex" % base for base in (0, 5)),
    *(b"00000000000000000005.txnindex", b"00000000000000000005.snapshot", b"any.index"),
    *(b"99999999999999999999.log", b"7.log", b"x.log", b"00000000000000000000.index.deleted"),
    *(b"00000000000000000005.log.swap", b"00000000000000000009.log.cleaned", b"notes.txt"),
    *(b"\xff.index", b"\xfe.log", "ü.timeindex".encode(), b"a\nb.index", b"'.txnindex"),
    *(b"00000000000000000005.log.gz", b"00000000000000000012.log (1)", b"5.tierstate"),
    *(b"partition.metadata", b"leader-epoch-checkpoint"),
)
FOLDERS = ("topic{}-0", "a.b{}-3", "ü{}-1", "x{}-99999999999", "plain{}", "'{}-2")
MOVED = ("", "", "", f".{HASH}-delete", f".{HASH}-stray", f".{HASH}-future")
Row = tuple[Any, ...]
Scandir = Callable[[str], Any]


@pytest.mark.parametrize("number", range(8))
def test_a_drawn_tree_is_listed_as_a_plain_walk_lists_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    rng = random.Random(f"{SEED} tree {number}")
    scandir: Scandir = os.scandir
    refused = {
        path: rng.choice([PermissionError(13, "Permission denied"), FileNotFoundError(2, "gone")])
        for path in _draw(rng, tmp_path / "source")
        if rng.random() < 0.1
    }

    def may_refuse(path: str) -> Any:
        if path in refused:
            raise refused[path]
        return scandir(path)

    monkeypatch.setattr(os, "scandir", may_refuse)

    walked = walk_folders([(str(tmp_path / "source"), "")])

    found = [_row(row) for rows in walked.folders for row in rows]
    monkeypatch.undo()
    expected = _plain_walk(os.fsencode(tmp_path / "source"), "", set(refused))
    assert walked.left == []
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert len(found) > 20


def _draw(rng: random.Random, root: Path) -> Iterator[str]:
    """Make a tree; yield the paths of its folders but the first."""
    root.mkdir()
    disks = [root, *(root / f"disk{number}" for number in range(rng.randrange(1, 3)))]
    for number, disk in enumerate(disks):
        disk.mkdir(exist_ok=True)
        _fill(rng, disk, most=3)
        if disk != root:
            yield str(disk)
        for other in range(rng.randrange(8, 16)):
            name = rng.choice(FOLDERS).format(f"{number}{other}")
            folder = disk / (name + (rng.choice(MOVED) if name[-2] == "-" else ""))
            folder.mkdir()
            _fill(rng, folder, most=12)
            yield str(folder)


def _fill(rng: random.Random, folder: Path, *, most: int) -> None:
    for name in rng.sample(FILES, rng.randrange(most + 1)):
        path = os.path.join(os.fsencode(folder), name)
        kind = rng.random()
        if kind < 0.04:
            Path(os.fsdecode(path)).mkdir()
        elif kind < 0.08:
            os.mkfifo(path)
        elif kind < 0.16:
            target = rng.choice([b"/nowhere", b".", b"/etc/hostname", path])
            Path(os.fsdecode(path)).symlink_to(os.fsdecode(target))
        else:
            with open(path, "wb") as file:
                file.write(bytes(rng.randrange(5)))
            os.utime(path, ns=(0, rng.choice([0, 1_700_000_000_123_456_789, -5])))


def _row(row: Listed) -> Row:
    of_segment = (row.base_offset, row.mtime_ns, row.is_active, row.next_base_offset)
    is_segment = row.kind == "segment"
    size = row.size_bytes if is_segment else None
    return (row.kind, row.relative_path, row.name, size, *(of_segment if is_segment else ()))


def _plain_walk(folder: bytes, relative: str, refused: set[str]) -> Iterator[Row]:
    """Yield what the rows of a folder and of all below must say, as ``_row`` has them."""
    if os.fsdecode(folder) in refused:
        yield ("unlisted", relative, "", None)
        return
    found_here = map(os.fsencode, Path(os.fsdecode(folder)).iterdir())
    status = {os.path.basename(path): os.lstat(path) for path in found_here}
    below = [n for n, found in status.items() if stat.S_ISDIR(found.st_mode) and _is_text(n)]
    own = _partition(os.path.basename(folder))
    of_log = re.compile(rb"[0-9]{20}\.log|(leader-epoch-checkpoint|partition\.metadata)$")
    has_log = any(of_log.match(n) and n not in below for n in status)
    is_log = own is not None and (has_log or not below)
    segments = []
    has_logs = not is_log and any(_partition(name) is not None for name in below)
    for name, found in status.items():
        kind = _kind(name, found, is_log, own, has_logs=has_logs)
        is_alone = name.endswith(b".log.swap") and name.removesuffix(b".swap") not in status
        if kind == "left_over" and is_alone and own not in (b"delete", b"stray"):
            kind = "unrecognized"  # no segment holds its records
        if kind is None and stat.S_ISREG(found.st_mode) and (is_log or has_logs):
            kind = _kind_of_other(name, {*status} if is_log else set())
        if kind == "segment":
            segments.append((int(name[:20]), name, found))
        elif kind is not None:
            yield (kind, relative, name.decode("utf-8", "backslashreplace"), None)
    segments.sort()
    for number, (base, name, found) in enumerate(segments):
        after = segments[number + 1][0] if number + 1 < len(segments) else None
        of_file = (found.st_size, base, found.st_mtime_ns, after is None, after)
        yield ("segment", relative, name.decode(), *of_file)
    if is_log and own not in (b"delete", b"stray"):
        yield ("log", relative, "", None)
    if not is_log:
        if has_logs:
            yield ("log_dir", relative, "", None)
        for name in below:
            path = "/".join(filter(None, (relative, name.decode())))
            yield from _plain_walk(os.path.join(folder, name), path, refused)


def _partition(name: bytes) -> bytes | None:
    """Return what a name says of a partition's folder, b"" for a live one; None: it is none."""
    moved = re.fullmatch(rb"([^\s]+-[^\s]+)\.[^\s]+-(delete|stray|future)", name)
    live = re.fullmatch(rb".+-([0-9]{1,10})", moved[1] if moved else name, re.DOTALL)
    if live is None or int(live[1]) >= 2**31:
        return None
    return moved[2] if moved else b""


def _kind(
    name: bytes, found: os.stat_result, is_log: bool, state: bytes | None, *, has_logs: bool
) -> str | None:
    """Return the kind of the row that a name must have; None: none."""
    if not _is_text(name):
        return "unrecognized"
    if stat.S_ISLNK(found.st_mode):
        return "not_followed"
    if stat.S_ISDIR(found.st_mode):
        return "unrecognized" if is_log else None
    if not stat.S_ISREG(found.st_mode):
        return "unrecognized"
    if is_log and name.endswith((b".deleted", b".swap", b".cleaned")):
        return "left_over"
    if not is_log and re.match(rb"[0-9]{20}\.log", name):
        return "unrecognized"
    if not name.endswith(b".log"):
        return None
    if not is_log:
        return None if has_logs else "unrecognized"
    if not re.fullmatch(rb"[0-9]{20}\.log", name) or int(name[:20]) >= 2**63:
        return "unrecognized"
    return {b"delete": "left_over", b"stray": "unrecognized"}.get(state or b"", "segment")


def _kind_of_other(name: bytes, names: set[bytes]) -> str | None:
    """Return the kind of a file beside segments or logs that is neither; None: it has no row."""
    if name in (b"partition.metadata", b"leader-epoch-checkpoint") and names:
        return None
    if re.fullmatch(rb"[0-9]{20}\.(index|timeindex|txnindex|snapshot)", name):
        return None
    copy = re.match(rb"[0-9]{20}\.log", name)
    return "unrecognized" if copy and copy[0] not in names else "passed_over"


def _is_text(name: bytes) -> bool:
    return name.decode("utf-8", "replace").encode() == name
