"""Python blocks of a page of docs/, run one after the other, and the output that stands below."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parents[3] / "docs"
WAREHOUSE = "/srv/warehouse"  # what the pages call it
_BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```\n(?P<output>.*?)```\n)?", re.DOTALL)


class Block(NamedTuple):
    """A block of code, and the output that the page shows of it; None: it shows none."""

    code: str
    output: str | None


def blocks(page: str) -> list[Block]:
    """Read the blocks of a page's text."""
    return [Block(found["code"], found["output"]) for found in _BLOCK.finditer(page)]


class PageRun:
    """The blocks of a page on a warehouse: each is run once, after those before it."""

    def __init__(self, page: str, warehouse: Path) -> None:
        self._blocks = blocks(page)
        self._warehouse = str(warehouse)
        self._names: dict[str, Any] = {}
        self._printed: list[str] = []

    def printed(self, number: int) -> str:
        """Return what a block printed, as the page would say."""
        while len(self._printed) <= number:
            self._printed.append(self._run(self._blocks[len(self._printed)]))
        return self._printed[number]

    def all_printed(self) -> list[str]:
        """Return what each block printed."""
        return [self.printed(number) for number in range(len(self._blocks))]

    def _run(self, block: Block) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(block.code.replace(WAREHOUSE, self._warehouse), self._names)
        text = out.getvalue().replace(self._warehouse, WAREHOUSE)
        lines = (line.rstrip() for line in text.splitlines())
        return "".join(f"{line}\n" for line in lines).rstrip("\n") + "\n" * bool(text)


def run_page(page: str, warehouse: Path) -> list[str]:
    """Run the blocks of a page on a warehouse; return what each printed, as the page would say."""
    return PageRun(page, warehouse).all_printed()


def rewritten(page: str, printed: list[str]) -> str:
    """Return the page's text with the output of a run."""
    outputs = iter(printed)

    def renew(found: re.Match[str]) -> str:
        output = next(outputs)
        shown = "" if found["output"] is None else f"\n```\n{output}```\n"
        return f"```python\n{found['code']}```\n{shown}"

    return _BLOCK.sub(renew, page)
