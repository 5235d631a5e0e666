"""What holds for every option of every verb: refused where it is given twice or out of range."""

from collections.abc import Iterator

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from kafka_segments.cli import cli
from kafka_segments.kafka.broker_rules.versions import parse_version


def _walk(command: click.Command, names: tuple[str, ...] = ()) -> Iterator[tuple]:
    for option in command.get_params(click.Context(command)):
        if isinstance(option, click.Option):
            yield command, names, option
    if isinstance(command, click.Group):
        for name, verb in command.commands.items():
            yield from _walk(verb, (*names, name))


ALL = [found for found in _walk(cli) if not found[2].is_eager]
NUMBERS = [found for found in ALL if isinstance(found[2].type, click.types.IntParamType)]


def _id(found: object) -> str | None:
    if isinstance(found, click.Option):
        return found.opts[0]
    return " ".join(found) if isinstance(found, tuple) else None


def _value(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return str(option.type.choices[0])
    return "1" if isinstance(option.type, click.types.IntParamType) else __file__


def _refused(command: click.Command, *arguments: str) -> str:
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 2, done.output
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(("command", "names", "option"), ALL, ids=_id)
def test_an_option_that_is_given_twice_is_refused_and_a_repeatable_one_with_the_same_value(
    command, names, option
):
    name = option.opts[0]
    given = [name] if option.is_flag else [name, _value(option)]
    arguments = ["QUERY"] * sum(isinstance(param, click.Argument) for param in command.params)

    line = _refused(command, *arguments, *given, *given)

    shown = " ".join(given) if option.multiple else name
    assert line.startswith(f"Error: {shown} is given 2 times")


def test_an_option_is_the_same_with_and_without_equals_sign_and_help_comes_first():
    line = _refused(cli, "report", "--out=a", "--warehouse", "w", "--out", "a")

    assert line == (
        "Error: --out is given 2 times, and takes one value: leave only the one that is meant"
    )
    helped = CliRunner().invoke(cli, ["report", "--out=a", "--out=b", "--help"])
    assert helped.exit_code == 0


@pytest.mark.parametrize("value", [str(2**63), str(-(2**63) - 1), "9" * 5000], ids=len)
@pytest.mark.parametrize(("command", "names", "option"), NUMBERS, ids=_id)
def test_a_number_out_of_range_is_refused_before_a_session_starts(command, names, option, value):
    line = _refused(command, f"{option.opts[0]}={value}")

    assert line.startswith(f"Error: Invalid value for '{option.opts[0]}'")


def test_a_moment_that_no_timestamp_column_holds_is_refused():
    line = _refused(cli, "report", "--warehouse=w", "--out=o", "--now-ms=253402300800000")

    assert line == (
        "Error: Invalid value for '--now-ms': 253402300800000 lies after the year 9999: ms"
        " since 1970 expected, up to 253402300799999 (9999-12-31 23:59:59.999 UTC)"
    )


PLACES = [found for found in ALL if found[2].metavar in ("DIR", "FILE", "URI")]


@pytest.mark.parametrize(("command", "names", "option"), PLACES, ids=_id)
def test_a_shell_completes_what_is_a_path(command, names, option):
    found = ShellComplete(cli, {}, "kafka-segments", "").get_completions(
        [*names, option.opts[0]], ""
    )

    assert [item.type for item in found] == ["file" if option.metavar == "FILE" else "dir"]


VERBS = [found[:2] for found in ALL if found[2].name == "verbose"]


@pytest.mark.parametrize(("command", "names"), VERBS, ids=_id)
def test_every_verb_but_the_shell_prints_json_and_csv_and_its_options_complete(command, names):
    (output,) = [option for option in command.params if option.name == "output"] or [None]
    if names != ("shell",):
        assert {"table", "json", "csv"} <= set(output.type.choices)
    completed = ShellComplete(cli, {}, "kafka-segments", "").get_completions([*names], "--")
    assert {"--quiet", "--verbose"} <= {item.value for item in completed}


SETTING = [found[:2] for found in ALL if found[2].name == "pairs"]


@pytest.mark.parametrize(("command", "names"), SETTING, ids=_id)
def test_a_setting_that_there_is_none_of_is_refused_by_every_verb(command, names):
    needed = [
        word
        for param in command.params
        if param.required
        for word in ([param.opts[0], "x"] if isinstance(param, click.Option) else ["orders-0"])
    ]

    for pair, reason in (
        ("retention_mss=1", "unknown setting retention_mss"),
        (f"segment.ms={2**63}", f"segment_ms is '{2**63}': Input should be less than or equal"),
    ):
        line = _refused(command, *needed, "--set", pair)
        assert line.startswith(f"kafka-segments: {reason}")


OF_RELEASES = [(names, command) for command, names, found in ALL if found.name == "kafka_version"]
NOT_KNOWN = {
    "5.0": "its rules are not known; 4.4 is the newest release that is: name it to go by its rules",
    "4.5": "its rules are not known",
    "3.10": "there is no such release; known are 0.8.0 to 0.11.0, 1.0",
    "four": "a release such as 4.3 or 2.8.1 expected",
}


def test_every_verb_whose_answers_differ_by_release_takes_one():
    assert {" ".join(names) for names, _ in OF_RELEASES} == {
        "audit", "build", "internals groups", "lag", "migrate inventory", "retention decide",
        "retention explain", "retention plan", "roll", "search bootstrap", "search failover",
        "search offsets", "search restore",
    }  # fmt: skip


@pytest.mark.parametrize("release", NOT_KNOWN)
@pytest.mark.parametrize("command", [command for _, command in OF_RELEASES], ids=_id)
def test_a_release_that_nobody_knows_is_refused_by_every_verb_in_the_same_words(
    command, release, tmp_path
):
    for table in command.reads:  # they are looked for first
        (tmp_path / table / "_delta_log").mkdir(parents=True)
        (tmp_path / table / "_delta_log" / f"{0:020d}.json").write_text('{"add": {}}\n')
    needed = {"--time": "LATEST", "--last": "1h"}
    given = ["orders-0"] * sum(isinstance(param, click.Argument) for param in command.params)
    for option in command.params:
        if (option.required and isinstance(option, click.Option)) or option.opts[0] in needed:
            given += [option.opts[0], needed.get(option.opts[0], str(tmp_path))]

    line = _refused(command, *given, "--kafka-version", release)

    assert line.startswith(f"kafka-segments: --kafka-version {release}: {NOT_KNOWN[release]}")


@pytest.mark.parametrize("release", ["0.8", "0.10", "0.10.2.1", "2.8.2", "3.9.9", "4.4", "4.4.17"])
def test_a_known_line_and_each_of_its_fixes_is_a_release(release):
    assert parse_version(release) == tuple(map(int, release.split(".")))
