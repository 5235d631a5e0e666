"""What this user may not read: told apart from damage, with whose it is and what to do."""

import errno
import os
from pathlib import Path

import pytest

from kafka_segments.files.storage.files import first_line
from kafka_segments.files.storage.permissions import is_forbidden
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.verbs.scan.scanner import _unread


def test_the_line_of_a_forbidden_file_has_its_owner_and_the_command(tmp_path: Path) -> None:
    file = tmp_path / "0.log"
    file.touch(0o600)
    os.chown(file, os.getuid(), -1)

    line = first_line(PermissionError(errno.EACCES, "Permission denied", str(file)))

    owner = file.owner()
    assert line.startswith(f"[Errno 13] Permission denied: '{file}'; it is {owner}'s, mode 600; ")
    assert f"no damage: run this by `sudo -u {owner}`, or" in line
    assert "setfacl -R -m u:" in line


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/none/0.log"), "not_permitted"),
        (PermissionError(errno.EPERM, "Operation not permitted"), "not_permitted"),
        (OSError("Failed to open local file '/none/x'. Detail: [errno 13] Pe"), "not_permitted"),
        (OSError(errno.EIO, "Input/output error", "/none/0.log"), "unreadable"),
        (OSError("s3://b/k: [errno 13] AccessDenied"), "unreadable"),
    ],
)
def test_it_is_a_kind_of_its_own(error: OSError, kind: str) -> None:
    damage = _unread(error).damage

    assert damage is not None
    assert damage.kind == DamageKind(kind)
    assert is_forbidden(error) == (kind == "not_permitted")
    assert ("sudo -u kafka" in damage.message) == (kind == "not_permitted")


def test_an_error_of_another_class_is_none() -> None:
    assert not is_forbidden(ValueError("[errno 13]"))
