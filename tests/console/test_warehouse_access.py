"""Whether a warehouse can be written is told before the work."""

import errno
import os
from pathlib import Path

import pytest

from kafka_segments.console.warehouse_access import keeps_nothing, require_writable
from kafka_segments.errors import UsageError
from kafka_segments.files.storage import refused_calls


@pytest.mark.parametrize(
    ("module", "call", "code", "lacks"),
    [
        (os, "replace", errno.EOPNOTSUPP, "renames"),
        (os, "link", errno.EPERM, "hard links"),
        (refused_calls.fcntl, "flock", errno.ENOLCK, "locks"),
    ],
)
def test_a_file_system_that_lacks_a_call_is_named(
    module: object,
    call: str,
    code: int,
    lacks: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    warehouse = str(tmp_path / "new" / "warehouse")
    require_writable(warehouse)
    assert not keeps_nothing(warehouse, dry_run=False)

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(module, call, refuse)

    with pytest.raises(UsageError, match=rf"cannot be written \(its file system has no {lacks}\)"):
        require_writable(warehouse)
    assert keeps_nothing(warehouse, dry_run=False)
    assert f"has no {lacks}): the answer is given, and not kept there" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_is_told_by_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)

    require_writable(str(tmp_path))
