"""Only the console writes to stdout and stderr, so that no name reaches a terminal raw."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "lib" / "kafka_segments"
WRITES = re.compile(
    r"sys\.std(out|err)\.(write|buffer)|\bclick\.(echo|secho)\(|^\s*print\(|\bcsv\.(w|D)|rich\.markup",
    re.MULTILINE,
)
ITSELF = {
    "console/lines.py",
    "console/output.py",
    "engine/spark/jars_fetch.py",  # the console imports it; it names no data
    "engine/spark/jvm_lines.py",  # the console imports it; it makes lines plain itself
    "engine/spark/surroundings.py",  # before Spark is imported; it makes its line plain itself
    "jars.py",
    "class_archive.py",
}


def test_only_the_console_writes() -> None:
    found = {
        str(path.relative_to(LIBRARY))
        for path in LIBRARY.rglob("*.py")
        if WRITES.search(path.read_text("utf-8"))
    }

    assert found == ITSELF


def _raw_cells(tree: ast.AST) -> Iterator[ast.expr]:
    """Give what is put into a table, or printed by rich, as it is: a value, or a text made of some.

    A call makes it plain, or makes a text of numbers.
    """
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            of_console = isinstance(call.func.value, ast.Call) and call.func.attr == "print"
            if call.func.attr == "add_row" or of_console:
                for given in call.args:
                    if isinstance(given, ast.Subscript | ast.Attribute | ast.JoinedStr):
                        yield given


def test_no_value_gets_into_a_table_as_it_is() -> None:
    raw = {
        f"{path.relative_to(LIBRARY)}:{given.lineno}"
        for path in LIBRARY.rglob("*.py")
        for given in _raw_cells(ast.parse(path.read_text("utf-8")))
    }

    assert not raw


def test_a_value_in_a_table_is_found() -> None:
    lines = ["table.add_row(cell(a), row['x'], f'{a}', a.b, 'c')", "console().print(f'{a}')"]

    assert len(list(_raw_cells(ast.parse("\n".join(lines))))) == 4
