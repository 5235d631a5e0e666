"""Tables at all widths of a terminal: no number is folded or cut."""

import random
import re
from io import StringIO

import pytest
from rich.console import Console

from kafka_segments.console import table_form
from kafka_segments.console.output import cell
from kafka_segments.console.table_form import made_table, show_table


def _printed(
    width: int, seed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[str, list[str], list[str]]:
    """Return what is printed of a drawn table, its numbers and its texts."""
    rng = random.Random(seed)
    out = StringIO()
    monkeypatch.setattr(table_form, "console", lambda: Console(file=out, width=width))
    kinds = [rng.random() < 0.6 for _ in range(rng.randrange(2, 12))]
    names = [f"c{at}{'>' if is_number else ''}" for at, is_number in enumerate(kinds)]
    table = made_table(*names)
    numbers, texts = [], []
    for _ in range(rng.randrange(1, 5)):
        row = []
        for is_number in kinds:
            if is_number:
                row.append(str(rng.randrange(10 ** rng.randrange(1, 20))))
                numbers.append(row[-1])
            else:
                row.append(cell(rng.choice(["orders-0", "[b]x[/b]", "n" * rng.randrange(1, 90)])))
        table.add_row(*row)
    show_table(table)
    return out.getvalue() + capsys.readouterr().out, numbers, texts


@pytest.mark.parametrize("width", [40, 60, 80, 120, 160, 200])
def test_numbers_stand_whole_at_every_width(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(40):
        text, numbers, _ = _printed(width, seed, monkeypatch, capsys)

        assert sorted(numbers) == sorted(
            re.findall(r"(?<!\S)[0-9]+(?!\S)", _without_headings(text))
        )


def _without_headings(text: str) -> str:
    return re.sub("-- row [0-9]+", "", text)


def test_a_row_is_a_block_where_a_table_is_too_wide(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table_form, "console", lambda: Console(width=30))
    table = made_table("log", "from>", "up to>", "why")
    table.add_row(cell("[b]-0"), "9223372036854775807", "9223372036854775806", "so")

    show_table(table)

    assert capsys.readouterr().out.splitlines() == [
        "-- row 1",
        "log    [b]-0",
        "from   9223372036854775807",
        "up to  9223372036854775806",
        "why    so",
    ]


def test_a_value_of_a_block_ends_its_lines_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table_form, "console", lambda: Console(width=34))
    path = "/srv/kafka/a-folder-with-a-long-name/00000000000000000000.log"
    table = made_table("at>", "why")
    table.add_row("9223372036854775807", cell(f"it begins at offset 127; see {path} too"))

    show_table(table)

    assert capsys.readouterr().out.splitlines() == [
        "-- row 1",
        "at   9223372036854775807",
        "why  it begins at offset 127; see",
        f"     {path}",
        "     too",
    ]


def test_a_row_is_a_block_before_a_name_is_folded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = made_table("rows>", "expectation", "why")
    table.add_row("1", "retention_by_record_time", "of many words that may be folded")

    for width in (38, 37):
        monkeypatch.setattr(table_form, "console", lambda width=width: Console(width=width))
        show_table(table)

    as_table, as_block = capsys.readouterr().out.split("-- row 1\n")
    assert "1  retention_by_record_time" in as_table
    assert "expectation  retention_by_record_time\n" in as_block
