"""The commands of docs/runbook.md, and how they are run at the place of a disaster."""

import os
import re
import subprocess
import sys
from pathlib import Path

from support.house.tutorial import ROOT, Step, steps
from support.kafka.disasters import Site
from support.kafka.kafka_tools import KafkaTools

PAGE = ROOT / "docs" / "runbook.md"
SITE = "/srv/kafka"
_BOOTSTRAP = "localhost:9092"
_SERVICE = re.compile(r"systemctl (start|stop) kafka(?:@(\d))?$")
_PLAN = re.compile(r"--plan ([0-9a-f]{12})")
_ANSWER = re.compile(r"^[\w.-]+:\d+:\d+$", re.MULTILINE)
_UNIT = re.compile(r"\b(?:bytes|KiB|MiB|GiB|ms|min|s|h|d)\b")


def sections(page: str) -> dict[str, list[Step]]:
    """Return the commands of each section of the page that has some, by its title."""
    parts = re.split(r"^## (.*)\n", page, flags=re.MULTILINE)[1:]
    found = {title: steps(text) for title, text in zip(parts[::2], parts[1::2], strict=True)}
    return {title: steps_of for title, steps_of in found.items() if steps_of}


class Operator:
    """Who runs the commands of a section, in ``folder``, one after another."""

    def __init__(self, site: Site, folder: Path, scratch: Path) -> None:
        """``scratch``: where Kafka's tools keep their files."""
        self._site, self._folder, self._scratch = site, folder, scratch
        self._plan: str | None = None
        self._calls = 0

    def run(self, step: Step) -> Step:
        """Run a command; return it as it was run, with what it prints as the page shows it."""
        command = step.command
        if self._plan is not None:
            command = _PLAN.sub(f"--plan {self._plan}", command)
        return Step(command, self._run(command.replace("\\\n", " ").strip()))

    def _run(self, line: str) -> str:
        if service := _SERVICE.fullmatch(line):
            (self._site.start if service[1] == "start" else self._site.stop)(service[2] or "")
            return ""
        if line.startswith("kafka-") and not line.startswith("kafka-segments"):
            self._calls += 1
            tools = KafkaTools(self._scratch / f"tools-{self._calls}", self._site.bootstrap)
            return tools.run(line.replace(_BOOTSTRAP, self._site.bootstrap))
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        printed = subprocess.run(
            ["bash", "-c", line],
            cwd=self._folder,
            env=os.environ | {"PATH": programs, "COLUMNS": "300"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        ).stdout
        if made := _PLAN.search(printed):
            self._plan = made[1]
        printed = printed.replace(str(self._folder), SITE)
        return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def without_chance(printed: str) -> str:
    """Return what a command prints without what differs from run to run: times, ids, sizes, folds.

    Kafka's own answers of offsets stay as they are.
    """
    if _ANSWER.search(printed):
        return printed
    text = re.sub(r"[0-9a-f]{32}|(?<=plan )[0-9a-f]{12}|(?<=/)[0-9a-f]{12}(?=/)", "ID", printed)
    text = re.sub(r"\b[A-Za-z0-9_-]{22}\b", "ID", text)
    text = re.sub(r"[\d.,:-]*\d", "#", text)
    return re.sub(r"[\s-]+", "", _UNIT.sub("unit", text))
