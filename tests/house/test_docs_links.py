"""README, CONTRIBUTING and docs/: what they link to and the files that they name exist."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_segments.cli import cli

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "lib"
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]
FOLDERS = ("lib", "tests", "docs", "jobs", "conf", "schemas", "airflow_dags", "benchmarks")
# A site's own hooks, Hadoop's library, what numba caches.
NOT_OURS = {"kafka_segments_site.py", "lib/native/libhdfs.so", "lib/**/*.nb"}

WITHOUT_JOB = {"shell"}  # it runs the others in a session of its own

_LINK = re.compile(r"\]\(([^()\s]+)\)")
_PATH = re.compile(rf"(?<![\w/.<-])(?:{'|'.join(FOLDERS)})/[\w./*-]*[\w/*]")
_PYTHON_FILE = re.compile(rf"(?<![\w/*.-])(?!(?:{'|'.join(FOLDERS)})/)[\w/]+\.py\b")
_PYTHON_NAME = re.compile(r"(?<![\w/.-])kafka_segments(?:\.\w+)+")
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_STEP = re.compile(r"^\| \d+\w?\. [^|]+\|([^|]+)\|([^|]+)\|", re.MULTILINE)
_NAME = re.compile(r"`([^`]+)`")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def missing_links(page: str, text: str) -> list[str]:
    """Return the relative links of a page that lead to no file, or to no heading of it."""
    missing = []
    for link in _LINK.findall(_CODE.sub("", text)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            missing.append(link)
    return missing


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = _HEADING.findall(_CODE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def missing_paths(text: str) -> list[str]:
    """Return the paths and the names of Python files in a text that this repository lacks."""
    paths = sorted(set(_PATH.findall(text)) - NOT_OURS)
    names = sorted(set(_PYTHON_FILE.findall(text)) - NOT_OURS)
    missing = [path for path in paths if not any(ROOT.glob(path.rstrip("/")))]
    return missing + [name for name in names if not any(map(_holds(name), FOLDERS))]


def _holds(name: str) -> Callable[[str], bool]:
    return lambda folder: any((ROOT / folder).rglob(name))


def missing_names(text: str) -> list[str]:
    """Return the dotted names in a text that are no module of ours and defined in none."""
    return [name for name in _PYTHON_NAME.findall(text) if not _is_defined(name.split("."))]


def _is_defined(parts: list[str]) -> bool:
    module, name = LIBRARY.joinpath(*parts[:-1]).with_suffix(".py"), parts[-1]
    if LIBRARY.joinpath(*parts).is_dir() or LIBRARY.joinpath(*parts).with_suffix(".py").exists():
        return True
    if LIBRARY.joinpath(*parts[:-1]).is_dir():
        module = LIBRARY.joinpath(*parts[:-1], "__init__.py")
    defined = rf'^(?:def|class) {name}\b|^{name}\b.* =|^__all__ = [^]]*"{name}"'
    return module.exists() and bool(re.search(defined, module.read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    assert missing_links(page, (ROOT / page).read_text("utf-8")) == []


@pytest.mark.parametrize("page", PAGES)
def test_files_and_modules_that_are_named_exist(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")

    assert missing_paths(text) + missing_names(text) == []


def test_what_is_missing_is_told() -> None:
    links = "[a](no.md) [b](README.md#no-such) [c](README.md#verbs) [d](https://a.example)"
    text = "`lib/no.py` `tests/*/no_*` no_file.py kafka_segments.errors.No, kafka_segments.errors"

    assert missing_links("README.md", links) == ["no.md", "README.md#no-such"]
    assert missing_paths(text) == ["lib/no.py", "tests/*/no_*", "no_file.py"]
    assert missing_names(text) == ["kafka_segments.errors.No"]


def test_the_index_of_the_docs_has_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    pages = {Path(page).name for page in PAGES if page.startswith("docs/")} - {"README.md"}

    assert sorted(page for page in pages if f"]({page}" not in index) == []


def test_the_map_of_the_files_has_every_room() -> None:
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    library = LIBRARY / "kafka_segments"
    files = [path.relative_to(library) for path in library.rglob("*.py")]
    folders = {file.parent for file in files if file.name != "__init__.py"} - {Path()}
    rooms = {folder.as_posix() for folder in folders if folder.name != "decide"}

    assert sorted(room for room in rooms if f"`{room}/`" not in text) == []


def test_the_map_of_the_files_has_every_module_beside_the_rooms() -> None:
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    modules = {path.name for path in (LIBRARY / "kafka_segments").glob("*.py")} - {"__init__.py"}

    assert sorted(module for module in modules if f"`{module}`" not in text) == []


def test_the_steps_of_the_journeys_are_defined_where_the_page_says() -> None:
    missing, steps = [], _STEP.findall((ROOT / "docs" / "design.md").read_text("utf-8"))
    for functions, files in steps:
        paths = [LIBRARY / "kafka_segments" / name for name in _NAME.findall(files)]
        text = "".join(path.read_text("utf-8") for path in paths)
        names = [part for name in _NAME.findall(functions) for part in name.split(".")]
        missing += [name for name in names if not re.search(rf"\b(?:def|class) {name}\b", text)]

    assert len(steps) > 20
    assert missing == []


@pytest.mark.parametrize("verb", cli.commands)
def test_a_verb_is_in_the_readme_and_is_a_job(verb: str) -> None:
    jobs = [job.read_text("utf-8") for job in (ROOT / "jobs").glob("*.py")]

    assert re.search(
        rf"^\| \[`{verb}`\]\(docs/", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert verb in WITHOUT_JOB or any(
        re.search(rf"kafka_segments\.verbs\.[a-z.]+\.command import {verb}\n", job) for job in jobs
    )
