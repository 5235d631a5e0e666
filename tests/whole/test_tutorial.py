"""The commands of docs/tutorial.md print what the page shows.

``REWRITE_TUTORIAL=1`` puts the output of this run into the page.
"""

import os
from pathlib import Path

import pytest

from support.house.tutorial import PAGE, ROOT, Step, run_step, steps, with_outputs

PAGE_TEXT = PAGE.read_text("utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_the_commands_of_the_tutorial_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    folder = tmp_path / "tutorial"
    folder.mkdir()
    monkeypatch.chdir(folder)
    shown = steps(PAGE_TEXT)

    printed = [Step(step.command, run_step(step.command, folder)) for step in shown]

    if "REWRITE_TUTORIAL" in os.environ:
        PAGE.write_text(with_outputs(PAGE_TEXT, shown, printed), "utf-8")
        return
    assert printed == shown


def test_all_commands_of_the_tutorial_are_found() -> None:
    assert len(steps(PAGE_TEXT)) == PAGE_TEXT.count("\n$ ") > 8
