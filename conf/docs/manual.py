"""Write the commands' help as a page of the site, and as man pages: one a verb, and one of all.

python conf/docs/manual.py FOLDER: FOLDER/commands.md and FOLDER/man/man1/*.1.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from kafka_segments.cli import cli
from kafka_segments.release import __version__

_PROGRAM = "kafka-segments"


def commands() -> Iterator[click.Context]:
    """Give a context of each command, groups before what is in them."""
    yield from _within(click.Context(cli, info_name=_PROGRAM))


def _within(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name, command in context.command.commands.items():
            yield from _within(click.Context(command, context, info_name=name))


def _name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def page() -> str:
    """Return the site's page: each command with what its ``--help`` prints at 100 columns."""
    parts = ["# Commands\n\nWhat `--help` prints of each.\n"]
    for context in commands():
        context.terminal_width = context.max_content_width = 100
        level = 2 + context.command_path.count(" ")
        parts.append(f"{'#' * level} {context.command_path}\n\n```\n{context.get_help()}\n```\n")
    return "\n".join(parts)


def man_page(context: click.Context) -> str:
    """Return the man page of a command, as roff with the macros of man(7)."""
    context.terminal_width = context.max_content_width = 78
    name = _name(context)
    text = context.get_help()
    usage, _, rest = text.partition("\n\n")
    first = " ".join((context.command.help or "").split("\n\n")[0].split()).rstrip(".")
    lines = [
        f'.TH "{name.upper()}" "1" "" "{_PROGRAM} {__version__}" "User Commands"',
        *(".SH NAME", f"{_escaped(name)} \\- {_escaped(first)}"),
        *(".SH SYNOPSIS", _escaped(" ".join(usage.removeprefix("Usage: ").split()))),
        ".SH DESCRIPTION",
    ]
    described, *sections = re.split(r"^(?=\S.*:$)", rest, flags=re.MULTILINE)
    lines += _verbatim(described)
    for section in sections:
        title, _, body = section.partition("\n")
        lines += [f'.SH "{_escaped(title.rstrip(":").upper())}"', *_verbatim(body)]
    seen = [] if context.parent is None else [_name(context.parent)]
    seen += [_name(one) for one in _within(context) if one.parent is context]
    lines += [".SH SEE ALSO", ", ".join(f"\\fB{_escaped(one)}\\fR(1)" for one in seen)]
    return "\n".join(lines) + "\n"


def _verbatim(text: str) -> list[str]:
    return [".nf", *map(_escaped, text.strip("\n").split("\n")), ".fi"]


def _escaped(line: str) -> str:
    text = line.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"[^\x20-\x7e]", lambda one: f"\\[u{ord(one[0]):04X}]", text)
    return f"\\&{text}" if text[:1] in (".", "'") else text


def main() -> None:
    """Write all."""
    folder = Path(sys.argv[1])
    pages = folder / "man" / "man1"
    pages.mkdir(parents=True, exist_ok=True)
    (folder / "commands.md").write_text(page(), "utf-8")
    for context in commands():
        (pages / f"{_name(context)}.1").write_text(man_page(context), "ascii")


if __name__ == "__main__":
    main()
