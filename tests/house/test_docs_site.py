"""The site of docs/, and the man pages: every page is reached, and read without a warning."""

import re
import runpy
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from conftest import ROOT
from kafka_segments.cli import QUESTIONS
from support.house.ci import skip_but_in_ci

CONFIG = (ROOT / "conf" / "docs" / "mkdocs.yml").read_text("utf-8")
MKDOCS = ROOT / "build" / "docs-environment" / "bin" / "mkdocs"
GENERATED = {"api-reference.md", "commands.md", "contributing.md", "changelog.md"}
# Macros of man(7) that the pages use.
MACROS = {".TH", ".SH", ".nf", ".fi"}


@pytest.fixture(scope="module")
def manual() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "conf" / "docs" / "manual.py"))


@pytest.fixture(scope="module")
def man_pages(manual: dict[str, Any]) -> dict[str, str]:
    return {one.command_path: manual["man_page"](one) for one in manual["commands"]()}


def test_the_site_has_each_page_once() -> None:
    listed = re.findall(r"^ +- ([\w-]+\.md)$", CONFIG, re.MULTILINE)

    assert sorted(listed) == sorted({path.name for path in ROOT.glob("docs/*.md")} | GENERATED)


def test_each_command_has_a_man_page(man_pages: dict[str, str]) -> None:
    verbs = {f"kafka-segments {verb.name}" for verbs in QUESTIONS.values() for verb in verbs}

    assert {"kafka-segments", "kafka-segments recovery kit", *verbs} <= set(man_pages)
    for path, text in man_pages.items():
        lines = text.splitlines()
        named = path.replace(" ", "-")
        assert lines[0].startswith(f'.TH "{named.upper()}" "1"')
        assert lines[2].startswith(f"{named} \\- ".replace("-", "\\-", named.count("-")))
        assert {line.split(" ")[0] for line in lines if line.startswith(".")} == MACROS
        assert text.isascii()


def test_a_line_of_a_man_page_is_no_macro(manual: dict[str, Any]) -> None:
    escaped = manual["_escaped"]

    assert [escaped(line) for line in (".TH", "'x", "a-b\\…")] == [
        *("\\&.TH", "\\&'x", "a\\-b\\e\\[u2026]"),
    ]


def test_groff_reads_the_man_pages(man_pages: dict[str, str], tmp_path: Path) -> None:
    if not shutil.which("groff"):
        pytest.skip("this machine has no groff")
    for path, text in man_pages.items():
        (tmp_path / f"{path.replace(' ', '-')}.1").write_text(text)

    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", *tmp_path.iterdir()],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "kafka-segments triage /data/kafka-logs" in done.stdout


class _Page(HTMLParser):
    """The links and the anchors of a page, and what a browser loads for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors.add(given.get("id") or "")
        self.links += [link for name in ("href", "src") if (link := given.get(name))]
        if tag != "a":
            self.loaded += [link for name in ("href", "src") if (link := given.get(name))]


@pytest.mark.long
def test_the_site_is_built_without_a_warning_and_each_link_leads_somewhere(
    tmp_path: Path,
) -> None:
    if not MKDOCS.exists():
        skip_but_in_ci("environment for the site (make docs-setup)")
    made = ROOT / "build" / "docs"
    subprocess.run([sys.executable, ROOT / "conf/docs/manual.py", made], check=True)

    done = subprocess.run(
        [MKDOCS, "build", "--strict", "-f", ROOT / "conf/docs/mkdocs.yml", "-d", tmp_path],
        env={
            "PATH": "/usr/bin:/bin",
            "NO_MKDOCS_2_WARNING": "1",
            "HTTPS_PROXY": "http://127.0.0.1:1",
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    pages = {path.name: _Page(path) for path in tmp_path.glob("*.html")}
    broken = [
        (name, link)
        for name, page in pages.items()
        for link in page.links
        if "://" not in link and not _leads(tmp_path, name, link, pages)
    ]
    assert broken == []
    assert (
        "kafka_segments.api.warehouse.OpenWarehouse.retention"
        in pages["api-reference.html"].anchors
    )
    loaded = {link for page in pages.values() for link in page.loaded}
    assert any(link.endswith(".js") for link in loaded)
    assert not [link for link in loaded if "://" in link]
    assert (tmp_path / "search" / "search_index.json").exists()


def _leads(site: Path, name: str, link: str, pages: dict[str, _Page]) -> bool:
    target, _, anchor = unquote(link).partition("#")
    path = target.partition("?")[0] or name
    if path.endswith(".html") and anchor:
        return path in pages and anchor in pages[path].anchors
    return (site / path.lstrip("/")).exists()
