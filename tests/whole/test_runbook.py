"""The commands of docs/runbook.md, each section's on a real broker, from the first to the last.

``REWRITE_RUNBOOK=1`` puts the output of this run into the page.
"""

import os
from pathlib import Path

import pytest

from support.house.runbook import PAGE, Operator, sections, without_chance
from support.house.tutorial import with_outputs
from support.kafka.disasters import DISASTERS

PAGE_TEXT = PAGE.read_text("utf-8")


@pytest.mark.long
@pytest.mark.parametrize("title", DISASTERS)
def test_the_commands_of_a_section_lead_out_of_its_disaster(title: str, tmp_path: Path) -> None:
    folder, scratch = tmp_path / "kafka", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    shown = sections(PAGE_TEXT)[title]
    site = DISASTERS[title](folder, scratch)
    try:
        operator = Operator(site, folder, scratch)
        printed = [operator.run(step) for step in shown]
    finally:
        site.close()

    if "REWRITE_RUNBOOK" in os.environ:
        page = PAGE.read_text("utf-8")
        begin = page.index(f"## {title}\n")
        PAGE.write_text(with_outputs(page, shown, printed, begin=begin), "utf-8")
        return
    for old, new in zip(shown, printed, strict=True):
        assert without_chance(new.output) == without_chance(old.output), old.command


def test_each_section_of_the_runbook_with_commands_has_its_disaster() -> None:
    assert list(sections(PAGE_TEXT)) == list(DISASTERS)
