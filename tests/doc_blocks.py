"""Python blocks of a page of docs/, run one after the other, and the output that stands below."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parents[1] / "docs"
WAREHOUSE = "/srv/warehouse"  # what the pages call it
_BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```\n(?P<output>.*?)```\n)?", re.DOTALL)


class Block(NamedTuple):
    """A block of code, and the output that the page shows of it; None: it shows none."""

    code: str
    output: str | None


def blocks(page: str) -> list[Block]:
    """Read the blocks of a page's text."""
    return [Block(found["code"], found["output"]) for found in _BLOCK.finditer(page)]


def run_page(page: str, warehouse: Path) -> list[str]:
    """Run the blocks of a page on a warehouse; return what each printed, as the page would say."""
    names: dict[str, Any] = {}
    printed = []
    for block in blocks(page):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(block.code.replace(WAREHOUSE, str(warehouse)), names)
        text = out.getvalue().replace(str(warehouse), WAREHOUSE)
        lines = (line.rstrip() for line in text.splitlines())
        printed.append("".join(f"{line}\n" for line in lines).rstrip("\n") + "\n" * bool(text))
    return printed


def rewritten(page: str, printed: list[str]) -> str:
    """Return the page's text with the output of a run."""
    outputs = iter(printed)

    def renew(found: re.Match[str]) -> str:
        output = next(outputs)
        shown = "" if found["output"] is None else f"\n```\n{output}```\n"
        return f"```python\n{found['code']}```\n{shown}"

    return _BLOCK.sub(renew, page)
