"""The wheel has every file of the package, the mark of its types and the schemas among them."""

from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "lib" / "kafka_segments"
CACHED = (".pyc", ".nbi", ".nbc")


@pytest.fixture(scope="module")
def shipped() -> set[str]:
    builder = WheelBuilder(str(ROOT))
    return {file.distribution_path for file in builder.recurse_included_files()}


def test_the_wheel_has_every_file_of_the_package(shipped: set[str]) -> None:
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in CACHED)

    assert {path.relative_to(PACKAGE.parent).as_posix() for path in files} <= shipped


def test_the_wheel_has_the_schemas_and_says_that_it_has_types(shipped: set[str]) -> None:
    published = (path for path in (ROOT / "schemas").rglob("*.json"))
    schemas = {f"kafka_segments/{path.relative_to(ROOT).as_posix()}" for path in published}

    assert {"kafka_segments/py.typed", *schemas} <= shipped


def test_every_folder_of_the_package_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}

    assert [folder.name for folder in folders if not (folder / "__init__.py").exists()] == []
