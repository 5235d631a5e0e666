"""Pages of the site that docs/ has not: of docstrings, of the commands' help, from the top level.

Links from docs/ to files that are no pages become their names: the site has no copy of them.
"""

import ast
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ROOT / "build" / "docs" / "commands.md"
"""Written by ``manual.py``, in the environment that has the package."""
_OF_A_WAREHOUSE = "kafka_segments.api.internals.OpenInternals"
_FROM_THE_TOP = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_LINK = re.compile(r"\[([^]]*)\]\(([^()\s#]+)(#[^()\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, page in _FROM_THE_TOP.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text("utf-8")))
    files.append(File.generated(config, "commands.md", content=COMMANDS.read_text("utf-8")))
    files.append(File.generated(config, "api-reference.md", content=_api_reference()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to pages of the site."""
    del config
    folder = "" if page.file.src_uri in _FROM_THE_TOP.values() else "docs"

    def led(link: re.Match[str]) -> str:
        text, target, anchor = link.groups()
        if "://" in target:
            return link[0]
        path = PurePosixPath(_normal(f"{folder}/{target}"))
        if str(path) in _FROM_THE_TOP:
            return f"[{text}]({_FROM_THE_TOP[str(path)]}{anchor or ''})"
        name = str(path.relative_to("docs")) if path.parts[0] == "docs" else ""
        if files.get_file_from_path(name):
            return f"[{text}]({name}{anchor or ''})"
        return text if (ROOT / path).exists() else link[0]

    return _LINK.sub(led, markdown)


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _api_reference() -> str:
    """Return a page with the docstring of each public name, wherever it is defined."""
    source = (ROOT / "lib" / "kafka_segments" / "__init__.py").read_text("utf-8")
    tree = ast.parse(source)
    (public,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    imported = {
        name.name: f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    shown = [imported[name] for name in sorted(set(public) - {"__version__"}, key=str.lower)]
    named = "\n\n".join(f"::: {one}" for one in [*shown, _OF_A_WAREHOUSE])
    return f"# Names of `kafka_segments`\n\nHow they are used: [api.md](api.md).\n\n{named}\n"
