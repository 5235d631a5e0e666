"""Manifests: what we write beside other people's files, read back later, and act upon.

A manifest is input like any other file. This is the one reader of all of them:

1. The file is a plain one, of a limited size, and holds one JSON object without a key twice.
2. Its pydantic model has every key, of its type; other keys are refused. Names can hold no path.
3. ``version`` is that of the model.
4. ``digest`` is the SHA-256 of the rest: the JSON without it, keys sorted, no blanks.

Rows of tables by which a verb moves files are read by the same types (``checked_row``).

What it says of files is then held against these files when it is used, by whoever uses it. The
digest finds what was changed by accident. Who changes a file on purpose makes a new digest, and
then the other checks are what counts.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.plain_files import open_plain
from kafka_segments.files.storage.durable_files import write_durably

_DIGEST, _VERSION = "digest", "version"
_MOST_BYTES = 1 << 30
_MOST_SHOWN = 60


def _one_name(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError("no name of a file")
    return name


def _absolute(path: str) -> str:
    if "\0" in path or not path.startswith("/") or ".." in path.split("/"):
        raise ValueError("no absolute path")
    return path


Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""A number of bytes, or an offset."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, AfterValidator(_one_name)]
"""The name of something in a folder: no path."""
AbsolutePath = Annotated[str, AfterValidator(_absolute)]


class Part(BaseModel):
    """A part of a manifest: every key is there, is of its type, and no other one is."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Manifest(Part):
    """A manifest as a whole.

    ``remedy`` is what to do about one that cannot be used. ``reads_unsigned``: one of 0.2.0 or
    before, without version and digest, is read by all other rules.
    """

    format_version: ClassVar[int] = 2
    remedy: ClassVar[str]
    reads_unsigned: ClassVar[bool] = False


_M = TypeVar("_M", bound=Manifest)
_P = TypeVar("_P", bound=Part)


def encoded(manifest: Manifest, *, indent: int | None = 1) -> bytes:
    """Return the JSON of a manifest, with its digest."""
    content = manifest.model_dump(mode="json")
    return signed({_VERSION: manifest.format_version, **content}, indent=indent)


def signed(content: Mapping[str, Any], *, indent: int | None = 1) -> bytes:
    """Return JSON with the digest of the rest in it."""
    return json.dumps({**content, _DIGEST: _sha256(_plain(content))}, indent=indent).encode()


def write_manifest(
    path: Path, manifest: Manifest, *, is_synced: bool = True, indent: int | None = 1
) -> None:
    """Write a manifest; it appears whole, and is on disk if ``is_synced``.

    ``indent`` None: in one line, which takes less time.
    """
    write_durably(path, encoded(manifest, indent=indent), is_synced=is_synced)


def read_manifest(path: Path, kind: type[_M]) -> _M:
    """Return the manifest in a file.

    Raises:
        SetAsideError: it is not there, or cannot be used; the text says which key, and what to do.
    """
    try:
        with open_plain(path, "rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _unusable(path, str(error.strerror), kind) from None
    return parse_manifest(data, kind, place=path)


def parse_manifest(data: bytes, kind: type[_M], *, place: object) -> _M:
    """Return the manifest in JSON; ``place``, its file, is for the error.

    Raises:
        SetAsideError: see ``read_manifest``.
    """
    try:
        return _parsed(data, kind)
    except ValidationError as error:
        reason = first_error(error)
    except RecursionError:
        reason = "it is nested too deeply"
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is no UTF-8"
    except ValueError as error:
        reason = str(error)
    raise _unusable(place, reason, kind)


def checked_row(row: Mapping[str, Any], kind: type[_P], *, place: object, remedy: str) -> _P:
    """Return what a row of a table says, by the columns that a model names.

    ``place`` says which row it is; ``remedy`` is what to do about one that cannot be used.

    Raises:
        SetAsideError: a value is none that may stand there.
    """
    try:
        return kind.model_validate({name: row[name] for name in kind.model_fields})
    except ValidationError as error:
        raise SetAsideError(place, f"{first_error(error)}; {remedy}") from None


def _parsed(data: bytes, kind: type[_M]) -> _M:
    if len(data) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES} bytes")
    content = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_no_constant)
    if not isinstance(content, dict):  # a TypeError would be one of ours
        raise ValueError(  # noqa: TRY004
            f"it holds {_shown(content)}, an object expected"
        )
    is_unsigned = kind.reads_unsigned and not {_DIGEST, _VERSION} & content.keys()
    digest, whole = content.pop(_DIGEST, None), _plain(content)
    version = content.pop(_VERSION, None)
    if not is_unsigned and (type(version) is not int or version != kind.format_version):
        raise ValueError(
            f"{_VERSION}: found {_shown(version)}, {kind.format_version} expected: another release"
            " wrote it"
        )
    manifest = kind.model_validate_json(_plain(content))
    if not is_unsigned and digest != _sha256(whole):
        raise ValueError(
            f"{_DIGEST}: found {_shown(digest)}, which is not that of the rest: it was changed"
            " since it was written"
        )
    return manifest


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key stands twice in an object")
    return content


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _plain(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def first_error(error: ValidationError) -> str:
    """Return the first thing that does not fit a model: the key, what was found and expected."""
    first = error.errors(include_url=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return message
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f"{key} is missing"
    return f"{key}: found {_shown(first['input'])}: {message}"


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _unusable(place: object, reason: str, kind: type[Manifest]) -> SetAsideError:
    return SetAsideError(place, f"no manifest that can be used: {reason}; {kind.remedy}")
