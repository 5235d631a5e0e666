"""``--output prometheus``: how figures are written, and what every answer says of itself."""

import math
import os
import sys

import click
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from kafka_segments.cli import cli
from kafka_segments.console.not_known import tell_not_known
from kafka_segments.console.options import run_with
from kafka_segments.console.prometheus import (
    Figure,
    Metric,
    counted_as_whole,
    give_figures,
    give_tables_age,
    text_format,
)
from kafka_segments.console.strict_options import Command
from kafka_segments.errors import FileChangedError
from support.verbs.every_verb import every_verb
from support.verbs.figures import read_figures

SIZE = Metric("x_bytes", "Bytes of \\ x.", ("topic",))
HOSTILE = (
    'a"} 1\nb',
    "\\",
    "\\n",
    "a\tb\rc",
    "\u202eback",
    "\x1b]0;t\x07",
    "é\u2028",
    "{a='b'}",
    "",
)
FIGURES = {"backup verify", "cleaner", "disk", "lag", "retention decide", "triage"}


def test_what_is_not_known_has_no_value_and_is_said() -> None:
    read = read_figures(text_format([Figure(SIZE, ("a",), None), Figure(SIZE, ("b",), 0)]))

    assert read == {"x_bytes": {("a",): None, ("b",): 0}}
    assert counted_as_whole(0, is_whole=False) is None
    assert (counted_as_whole(0, is_whole=True), counted_as_whole(3, is_whole=False)) == (0, 3)


def test_names_are_values_of_labels_whatever_is_in_them() -> None:
    text = text_format(Figure(SIZE, (name,), number) for number, name in enumerate(HOSTILE))

    read = {one.labels["topic"]: one.value for one in _samples(text, "kafka_segments_x_bytes")}
    assert read == {name: number for number, name in enumerate(HOSTILE)}
    assert "\\udcff" in text_format([Figure(SIZE, (os.fsdecode(b"\xff"),), 1)])


def test_figures_of_names_that_are_the_same_text_are_not_known() -> None:
    names = (os.fsdecode(b"\xff"), "\\udcff", "c")

    read = read_figures(text_format(Figure(SIZE, (name,), 1) for name in names))

    assert read == {"x_bytes": {("\\udcff",): None, ("c",): 1}}


def test_never_is_infinite_and_an_offset_is_whole() -> None:
    read = read_figures(text_format([Figure(SIZE, ("a",), math.inf), Figure(SIZE, ("b",), 2**53)]))

    assert read["x_bytes"] == {("a",): math.inf, ("b",): 2**53}


@pytest.mark.parametrize("verb", [verb for verb in every_verb() if verb != "shell"])
def test_the_verbs_that_have_figures_offer_them(verb: str) -> None:
    shown = CliRunner().invoke(cli, [*verb.split(), "--help"]).stdout

    assert ("node_exporter's textfile" in " ".join(shown.split())) == (verb in FIGURES)
    assert ("|prometheus]" in "".join(shown.split())) == (verb in FIGURES)


def test_a_shell_completes_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    def completed(words: str) -> str:
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
        shown = CliRunner().invoke(
            cli, [], prog_name="kafka-segments", env={"_KAFKA_SEGMENTS_COMPLETE": "bash_complete"}
        )
        return shown.stdout

    assert "plain,prometheus" in completed("kafka-segments triage --output")
    assert "prometheus" not in completed("kafka-segments records --output")


def _ended(
    verb: "click.Command", *words: str
) -> tuple[int, dict[str, dict[tuple[str, ...], float | None]]]:
    done = CliRunner().invoke(verb, ["d", "--output", "prometheus", *words])
    return done.exit_code, read_figures(done.stdout)


def _verb(body: "object") -> click.Command:
    @click.command("v", cls=Command, extra=None, example="", has_figures=True)
    @click.argument("folders", nargs=-1)
    @click.option("--now-ms", type=int, default=5_500)
    @click.option("--output", type=click.Choice(["table"]))
    @click.option("--verbose", is_flag=True)
    def verb(**options: object) -> None:
        run_with(body, options)  # type: ignore[arg-type]

    return verb


def test_an_answer_says_how_it_ended_of_when_it_is_and_how_old_its_tables_are() -> None:
    def body(**_: object) -> int:
        give_tables_age(2_500)
        give_tables_age(1_000)
        tell_not_known(["a", "a", "b"])
        give_figures([Figure(SIZE, ("t",), 1)], findings=3, unknowns=1)
        return 0

    status, read = _ended(_verb(body))

    assert status == 1
    assert read == {
        "exit_status": {("d", "v"): 1},
        "answer_timestamp_seconds": {("d", "v"): 5.5},
        "findings": {("d", "v"): 5},
        "unknowns": {("d", "v"): 3},
        "tables_age_seconds": {("d", "v"): 2.5},
        "x_bytes": {("d", "t"): 1},
    }


def test_an_age_that_is_not_known_is_said() -> None:
    def body(**_: object) -> int:
        give_tables_age(2_500)
        give_tables_age(None)
        give_figures([], findings=0, unknowns=0)
        return 0

    assert _ended(_verb(body))[1]["tables_age_seconds"] == {("d", "v"): None}


def test_a_verb_that_fails_prints_that_alone_whatever_it_had_given() -> None:
    def body(**_: object) -> int:
        give_tables_age(2_500)
        give_figures([Figure(SIZE, ("t",), 1)], findings=3, unknowns=1)
        raise FileChangedError("d", "changed")

    status, read = _ended(_verb(body), "--quiet")

    assert status == 3
    assert read == {
        "exit_status": {("d", "v"): 3},
        "answer_timestamp_seconds": {("d", "v"): 5.5},
        "findings": {("d", "v"): None},
        "unknowns": {("d", "v"): None},
    }


def test_a_verb_that_is_interrupted_prints_nothing() -> None:
    def body(**_: object) -> int:
        raise KeyboardInterrupt

    done = CliRunner().invoke(_verb(body), ["d", "--output", "prometheus"])

    assert (done.exit_code, done.stdout) == (130, "")


def test_on_a_terminal_nothing_in_a_name_acts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def body(**_: object) -> int:
        give_figures([Figure(SIZE, ("\x1b]0;t\x07",), 1)], findings=0, unknowns=0)
        return 0

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(SystemExit):
        _verb(body).main(["d", "--output", "prometheus"])

    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert 'topic="\\x1b]0;t\\x07"' in out


def _samples(text: str, name: str) -> list:
    return next(one.samples for one in text_string_to_metric_families(text) if one.name == name)
