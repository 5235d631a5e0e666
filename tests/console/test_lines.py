"""Lines on stdout and stderr: names do nothing to a terminal, JSON and CSV give them back."""

import csv
import io
import json
import logging

import pytest
from click.testing import CliRunner

from kafka_segments.cli import cli
from kafka_segments.console.lines import print_csv, print_dicts, print_json, print_line, say
from kafka_segments.console.options import run
from kafka_segments.console.output import print_text
from kafka_segments.errors import UsageError

HOSTILE = (
    "\x1b]52;c;Y29weQ==\x07",
    "good\rEVIL",
    "good\nEVIL",
    "a\r\nb",
    "a\0b",
    "\u202e\x9b",
    'a"b,c',
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_line_stays_one_line_that_prints(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for write in (say, print_line, print_text):
        write(f"group {name} is behind")

    said = capsys.readouterr()
    lines = [*said.out.splitlines(), *said.err.splitlines()]
    assert len(lines) == 3
    assert len({*lines}) == 1
    assert lines[0].isprintable()


def test_csv_gives_names_back(capsys: pytest.CaptureFixture[str]) -> None:
    print_csv(["name", "number"])
    for number, name in enumerate(HOSTILE):
        print_csv([name, number])

    out = capsys.readouterr().out
    assert out.startswith("name,number\n")
    read = list(csv.DictReader(io.StringIO(out, newline="")))
    assert [row["name"] for row in read] == [*HOSTILE]


def test_csv_quotes_a_carriage_return(capsys: pytest.CaptureFixture[str]) -> None:
    print_csv(["a\rb", "c"])

    assert capsys.readouterr().out == '"a\rb",c\n'


def test_a_list_in_csv_is_json_as_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"names": [*HOSTILE], "pairs": (("a", None),), "one": {"b": [True]}, "none": []}
    for output in ("csv", "json"):
        print_dicts([row], output)

    text, line = capsys.readouterr().out.rsplit("\n", 2)[:2]
    (read,) = csv.DictReader(io.StringIO(text, newline=""))
    assert {name: json.loads(value) for name, value in read.items()} == json.loads(line)


def test_csv_tells_null_from_an_empty_text(capsys: pytest.CaptureFixture[str]) -> None:
    for row in (["a", None, "", 0, False, 1.5, "b c"], [None, None], [None], [""], []):
        print_csv(row)

    out = capsys.readouterr().out
    assert out.splitlines() == ['a,,"",0,False,1.5,b c', ",", '""', '""', '""']


def test_json_gives_names_back(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"names": HOSTILE})

    (line,) = capsys.readouterr().out.splitlines()
    assert line.isprintable()
    assert json.loads(line) == {"names": [*HOSTILE]}


@pytest.mark.parametrize("error", [UsageError, ValueError])
def test_errors_and_warnings_are_lines(
    error: type[Exception], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])

    def fails() -> int:
        logging.getLogger("kafka_segments").warning("topic %s", "a\x1b\nb")
        raise error("no group a\x1b\rb")

    with pytest.raises(SystemExit):
        run(fails, verbose=False)

    warned, told = capsys.readouterr().err.splitlines()
    assert warned.endswith(r"topic a\x1b\nb")
    assert r"no group a\x1b" in told
    assert "\x1b" not in told


def test_wrong_usage_repeats_nothing_raw() -> None:
    done = CliRunner().invoke(cli, ["lag", "--warehouse", "/x", "--output", "\x1b[31m\r"])

    assert done.exit_code == 2
    assert "\x1b" not in done.output
    assert CliRunner().invoke(cli, ["lag\x1b"]).output.count("\x1b") == 0
