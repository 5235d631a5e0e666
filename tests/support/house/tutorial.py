"""The commands of docs/tutorial.md with their output, and how they are run again."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from kafka_segments.cli import cli

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "tutorial.md"
FOLDER = "/srv/tutorial"
_BLOCK = re.compile(r"^```\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)
_OURS = "kafka-segments "
_VARIES = (
    (re.compile(r"in [\d.]+ s \(.*\)$", re.MULTILINE), "in 12.3 s"),
    (re.compile(r"\(\d+ bytes\)$", re.MULTILINE), "(45678 bytes)"),
    (re.compile(r"(?<=the build of )[\d-]+ [\d:]+"), "2026-11-28 09:15:30"),
    (re.compile(r"(?<= UTC, ).+(?= before: what changed since)"), "12.500 s"),
)


class Step(NamedTuple):
    """A command of the page, as it stands there, and the lines below it."""

    command: str
    output: str


def steps(page: str) -> list[Step]:
    """Read the commands of the page, in their order."""
    found = []
    for block in _BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines(keepends=True)
            ends = next(n for n, line in enumerate(lines) if not line.endswith("\\\n"))
            found.append(Step("".join(lines[: ends + 1]), "".join(lines[ends + 1 :])))
    return found


def with_outputs(page: str, shown: list[Step], printed: list[Step], *, begin: int = 0) -> str:
    """Return a page with what a run printed in place of what it shows, from a place on."""
    at = begin
    for old, new in zip(shown, printed, strict=True):
        before = f"$ {old.command}{old.output}"
        at = page.index(before, at)
        page = f"{page[:at]}$ {new.command}{new.output}{page[at + len(before) :]}"
        at += 1
    return page


def run_step(command: str, folder: Path) -> str:
    """Run one command in a folder, which is the working folder; return what is printed.

    What differs from run to run is written as on the page: the folder, seconds, a page's bytes.
    """
    line = command.replace("\\\n", " ").strip()
    if line.startswith(_OURS):
        words = subprocess.run(
            ["bash", "-c", f"printf '%s\\0' {line.removeprefix(_OURS)}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\0")[:-1]
        done = CliRunner().invoke(cli, words, catch_exceptions=False)
        printed = done.output
    else:
        printed = subprocess.run(
            ["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=True
        ).stdout
    printed = printed.replace(str(folder), FOLDER)
    for varying, written in _VARIES:
        printed = varying.sub(written, printed)
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
