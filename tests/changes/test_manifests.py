"""The one reader of all manifests: what is no JSON, does not fit its model, or was changed."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.manifests import (
    Count,
    Manifest,
    Name,
    Part,
    encoded,
    parse_manifest,
    read_manifest,
    signed,
    write_manifest,
)


class _File(Part):
    name: Name
    size_bytes: Count


class _Noted(Manifest):
    remedy: ClassVar[str] = "make it again"

    files: tuple[_File, ...]
    message: str = ""


class _Older(_Noted):
    reads_unsigned: ClassVar[bool] = True


NOTED = _Noted(files=(_File(name="a", size_bytes=1), _File(name="b", size_bytes=2)))


def _spoilt(**changes: Any) -> bytes:
    """Return the JSON with other values, and a digest that fits them."""
    content = json.loads(encoded(NOTED)) | changes
    del content["digest"]
    return signed({key: value for key, value in content.items() if value is not ...})


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_manifest(tmp_path / "m.json", NOTED)

    assert read_manifest(tmp_path / "m.json", _Noted) == NOTED


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "Expecting value"),
        (b"\xff\xfe", "byte 0 is no UTF-8"),
        (b"[1]", "it holds [1], an object expected"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"files": NaN}', "NaN is no JSON"),
        (b'{"files": [], "files": []}', "a key stands twice"),
        (_spoilt(files=...), "files is missing"),
        (_spoilt(more=1), "more: found 1"),
        (_spoilt(message=None), "message: found None"),
        (_spoilt(files="abc"), "files: found 'abc'"),
        (_spoilt(files=[{"name": "a", "size_bytes": True}]), "files.0.size_bytes: found True"),
        (_spoilt(files=[{"name": "a", "size_bytes": 1.0}]), "files.0.size_bytes: found 1.0"),
        (_spoilt(files=[{"name": "a", "size_bytes": 10**30}]), "files.0.size_bytes: found 1000"),
        (_spoilt(files=[{"name": "../a", "size_bytes": 1}]), "files.0.name: found '../a'"),
        (_spoilt(files=[{"name": "a\0", "size_bytes": 1}]), "files.0.name: found 'a\\x00'"),
        (_spoilt(files=[{"name": "..", "size_bytes": 1}]), "files.0.name: found '..'"),
        (_spoilt(version=10**30), "version: found 1000"),
        (_spoilt(version=...), "version: found None, 2 expected"),
        (encoded(NOTED).replace(b'"size_bytes": 1', b'"size_bytes": 3'), "digest: found '"),
        (json.dumps({"version": 2, "files": []}).encode(), "digest: found None"),
    ],
)
def test_what_does_not_fit_is_told_with_its_key_and_what_to_do(data: bytes, message: str) -> None:
    with pytest.raises(SetAsideError) as refused:
        parse_manifest(data, _Noted, place="m.json")

    assert str(refused.value).startswith("m.json: no manifest that can be used: ")
    assert message in str(refused.value)
    assert str(refused.value).endswith("; make it again")
    assert "\n" not in str(refused.value)


def test_one_without_version_and_digest_is_read_where_an_older_release_wrote_such() -> None:
    data = json.dumps({"files": [{"name": "a", "size_bytes": 1}], "message": ""}).encode()

    assert parse_manifest(data, _Older, place="").files == NOTED.files[:1]
    with pytest.raises(SetAsideError, match="another release wrote it"):
        parse_manifest(data, _Noted, place="")
    with pytest.raises(SetAsideError, match="no name of a file"):
        parse_manifest(data.replace(b'"a"', b'"/a"'), _Older, place="")


@pytest.mark.parametrize("kind", ["link", "folder", "gone"])
def test_what_is_no_plain_file_is_not_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "m.json"
    if kind == "link":
        write_manifest(tmp_path / "elsewhere", NOTED)
        path.symlink_to("elsewhere")
    elif kind == "folder":
        path.mkdir()

    with pytest.raises(SetAsideError, match=r"m\.json: "):
        read_manifest(path, _Noted)
