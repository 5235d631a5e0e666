"""Ranges of files on a local disk, read by the system's own calls."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from kafka_segments.files.storage.local_file import LocalFile


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give a file of ten bytes."""
    path = tmp_path / "x.index"
    path.write_bytes(b"0123456789")
    return path


def test_ranges_are_shorter_at_the_end_only(file: Path) -> None:
    with closing(LocalFile(str(file))) as opened:
        assert opened.size_bytes == 10
        assert [opened.read(*one) for one in ((2, 3), (8, 5), (10, 1), (0, 0))] == [
            b"234", b"89", b"", b"",
        ]  # fmt: skip
        buffer = bytearray(6)
        assert opened.read_into(2, memoryview(buffer)) == 6
        assert buffer == b"234567"
        assert opened.read_into(7, memoryview(buffer)) == 3
        assert buffer == b"789567"
        assert opened.read_into(0, memoryview(buffer)[:0]) == 0


def test_reads_that_the_system_cuts_short_go_on(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pread, preadv = os.pread, os.preadv
    monkeypatch.setattr(os, "pread", lambda fd, length, at: pread(fd, min(length, 4), at))
    monkeypatch.setattr(os, "preadv", lambda fd, views, at: preadv(fd, [views[0][:4]], at))

    with closing(LocalFile(str(file))) as opened:
        buffer = bytearray(9)
        assert opened.read(1, 9) == b"123456789"
        assert opened.read(1, 20) == b"123456789"
        assert opened.read_into(0, memoryview(buffer)) == 9
        assert buffer == b"012345678"


def test_what_is_no_plain_file_is_refused(file: Path) -> None:
    folder, pipe, link = (file.with_name(name) for name in ("folder", "pipe", "link"))
    folder.mkdir()
    os.mkfifo(pipe)
    link.symlink_to(file)
    opened_before = _open_files()

    with closing(LocalFile(str(link))) as opened:
        assert opened.read(0, 2) == b"01"
    for odd in (folder, pipe, link):
        with pytest.raises(OSError, match=odd.name):
            LocalFile(str(odd), is_plain=True)
    with pytest.raises(IsADirectoryError):
        LocalFile(str(folder))
    with pytest.raises(OSError, match="a pipe, socket or device, no file"):
        LocalFile(str(pipe))  # would wait for who writes into it
    with pytest.raises(FileNotFoundError):
        LocalFile(str(file.with_name("missing")), is_plain=True)

    assert _open_files() == opened_before


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
