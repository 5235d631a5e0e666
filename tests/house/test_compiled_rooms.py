"""What numba has compiled is kept by the sources it is compiled of."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from conftest import LIBRARY
from kafka_segments.compiled_sources import ROOMS, compiled_sources

PACKAGE = LIBRARY / "kafka_segments"
IMPORTED = re.compile(r"^\s*(?:from|import) kafka_segments\.?([\w.]*)", re.MULTILINE)


def _room(source: Path) -> str:
    return _first_two(source.relative_to(PACKAGE).parts)


def _first_two(parts: Sequence[str]) -> str:
    """Return the room of formats, ``kafka/wire``; of others the outermost one."""
    return "/".join(parts[: 2 if parts[0] == "kafka" else 1])


def test_all_that_is_compiled_lies_in_the_rooms_that_name_its_cache() -> None:
    sources = {source: source.read_text("utf-8") for source in PACKAGE.rglob("*.py")}

    compiled = {_room(source) for source, text in sources.items() if "import njit" in text}
    reached = {
        _first_two(name.split("."))
        for source, text in sources.items()
        if _room(source) in ROOMS
        for name in IMPORTED.findall(text)
    }

    assert compiled == {"kafka/wire", "kafka/index"}
    assert reached <= {room.removesuffix(".py") for room in ROOMS}


@pytest.mark.parametrize(
    ("changed", "is_another"),
    [
        ("kafka/wire/varints.py", True),
        ("errors.py", True),
        ("verbs/tell/report/run.py", False),
        ("cli.py", False),
    ],
)
def test_another_cache_is_taken_for_other_compiled_sources_alone(
    tmp_path: Path, changed: str, is_another: bool
) -> None:
    copy = tmp_path / "kafka_segments"
    shutil.copytree(PACKAGE, copy)
    assert compiled_sources(copy) == compiled_sources(PACKAGE)

    with (copy / changed).open("a") as source:
        source.write("# another\n")

    assert (compiled_sources(copy) != compiled_sources(PACKAGE)) == is_another
