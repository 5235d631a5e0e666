"""What holds for the options of every verb: nothing is given twice, each number has its range."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from kafka_segments.console.early import Refused, check_before_session, refusal, require_output
from kafka_segments.console.help_form import write_example, write_options
from kafka_segments.console.json_log import JSON, LOG_FORMAT, TEXT, log_as_asked
from kafka_segments.console.lines import print_line
from kafka_segments.console.output_schemas import output_schema
from kafka_segments.console.prometheus import PROMETHEUS
from kafka_segments.errors import OutageError, UsageError
from kafka_segments.extras import require_extra
from kafka_segments.files.storage.uris import misread_uri, scheme_of, without_secrets
from kafka_segments.kafka.text.moments import END_OF_TIME_MS, moment_text

INT = click.IntRange(min=0, max=2**31 - 1)
POSITIVE_INT = click.IntRange(min=1, max=2**31 - 1)
LONG = click.IntRange(min=0, max=2**63 - 1)
_QUIET = "kafka_segments.quiet"


class _MomentMs(click.IntRange):
    """A moment in ms since 1970, up to the end of the year 9999."""

    name = "moment"

    def __init__(self) -> None:
        super().__init__(min=0, max=END_OF_TIME_MS)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the number; what lies out of range is told as a time."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            number = click.INT.convert(value, param, ctx)
            self.fail(
                f"{number} lies {'before 1970' if number < 0 else 'after the year 9999'}: ms since"
                f" 1970 expected, up to {END_OF_TIME_MS} ({moment_text(END_OF_TIME_MS)})",
                param,
                ctx,
            )


MOMENT_MS = _MomentMs()


def complete_folder(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Let a shell complete folders, where an option takes a path or a URI."""
    del ctx, param
    return [CompletionItem(incomplete, type="dir")]


class _Text(click.types.StringParamType):
    """A text that names a place, which a shell completes."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Let the shell complete folders, or files."""
        del ctx, param
        return [CompletionItem(incomplete, type=self._kind)]


class _Output(_Text):
    """A place that a verb writes its result to, which is looked at before the verb starts."""

    def refuse(self, option: str, value: str) -> None:
        """Refuse a value that cannot be written, as ``require_output``."""
        require_output(option, value, is_file=self._kind == "file")


class _LocalOutput(_Output):
    """The same on a disk: a path, no URI."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the path."""
        return Path(super().convert(value, param, ctx))

    def refuse(self, option: str, value: str | Path) -> None:
        """Refuse a path that cannot be written, as ``require_output``."""
        super().refuse(option, str(value))


OUTPUT_FILE, OUTPUT_FOLDER = _Output("file"), _Output("dir")
LOCAL_OUTPUT_FILE, LOCAL_OUTPUT_FOLDER = _LocalOutput("file"), _LocalOutput("dir")
_PLACES = {"DIR": _Text("dir"), "FILE": _Text("file"), "URI": _Text("dir")}
"""What completes a text, by what the help calls it."""
_NAMED = "NAME=URI"
_NAME_PLACES = {*_PLACES, _NAMED, "FOLDER", "CSV"}


def refuse_repeats(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Refuse an option that is given more often than it counts: click takes the last in silence.

    A repeatable one is refused where it has the same value twice: its rows would count twice.

    Raises:
        click.UsageError: with the option's name.
    """
    values, _, given = command.make_parser(ctx).parse_args(args=list(args))
    options = [param for param in given if isinstance(param, click.Option)]
    if ctx.resilient_parsing or any(option.is_eager for option in options):
        return
    for option, times in Counter(options).items():
        name = "/".join(option.opts)
        if option.multiple:
            value, same = Counter(values[option.name]).most_common(1)[0]
            if same > 1:
                ctx.fail(
                    f"{name} {without_secrets(str(value))} is given {same} times: once is enough"
                )
        elif option.is_flag and times > 1:
            ctx.fail(f"{name} is given {times} times: once is enough")
        elif times > 1:
            ctx.fail(
                f"{name} is given {times} times, and takes one value: leave only the one that is"
                " meant"
            )


def _refuse_misread_places(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Refuse a URI that would be taken for a path, and what it may say would be said again.

    Raises:
        Refused: with the scheme alone.
    """
    values, _, given = command.make_parser(ctx).parse_args(args=list(args))
    for param in given:
        is_path = isinstance(param.type, click.Path | _LocalOutput)
        if not (is_path or param.metavar in _NAME_PLACES):
            continue
        value = values[param.name]
        for text in map(str, value if isinstance(value, list | tuple) else (value,)):
            place = text.partition("=")[2] if param.metavar == _NAMED else text
            if reason := misread_uri(place):
                raise Refused(f"{param.opts[0]} {reason}")
            if is_path and scheme_of(place):
                raise Refused(
                    f"{param.opts[0]} {without_secrets(place)}: a path on a disk expected"
                )


def _refuse_outputs(command: click.Command, ctx: click.Context) -> None:
    """Refuse places that the result cannot be written to; a dry run writes to none.

    Raises:
        Refused: one of them is so.
    """
    if ctx.params.get("dry_run"):
        return
    for param in command.params:
        value = ctx.params.get(str(param.name))
        if isinstance(param.type, _Output) and value is not None:
            try:
                param.type.refuse(param.opts[0], value)
            except (UsageError, OutageError) as error:
                raise refusal(error) from None


def _quiet_option() -> click.Option:
    """Make the option that every verb has."""

    def note(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[_QUIET] = value

    return click.Option(
        ["--quiet"],
        is_flag=True,
        expose_value=False,
        callback=note,
        help="Nothing on stderr but errors: no progress, no summary.",
    )


def _log_format_option() -> click.Option:
    """Make the option that every verb has, and that ``log_as_asked`` has read by then."""
    return click.Option(
        [LOG_FORMAT],
        type=click.Choice([TEXT, JSON]),
        default=TEXT,
        show_default=True,
        expose_value=False,
        help="Form of the lines on stderr; json: an object each, without a progress bar.",
    )


def _schema_option() -> click.Option:
    """Make the option of the verbs that print rows."""

    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            for line in output_schema(verb_words(ctx)).splitlines():
                print_line(line)
            ctx.exit()

    return click.Option(
        ["--schema"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show the JSON Schema of what --output json prints a line, and exit.",
    )


def _offer_figures(output: click.Option) -> None:
    """Let ``--output`` print figures, too."""
    forms = output.type.choices if isinstance(output.type, click.Choice) else ()
    output.type = click.Choice([*forms, PROMETHEUS])
    told = (output.help or "").rstrip(".")
    output.help = f"{told}; prometheus: figures for node_exporter's textfile collector."


def verb_words(ctx: click.Context) -> str:
    """Return the words of a verb, such as ``divergence elect``, in its job, too."""
    words = [str(ctx.command.name)]
    while ctx.parent is not None and isinstance(ctx.parent.command, Group):
        ctx = ctx.parent
        words.insert(0, str(ctx.command.name))
    return " ".join(words)


def is_quiet() -> bool:
    """Tell whether the verb that runs was given ``--quiet``."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(_QUIET))


def _require_extra(extra: str, verb: str) -> None:
    try:
        require_extra(extra, verb)
    except UsageError as error:
        raise Refused(str(error)) from None


class Command(click.Command):
    """A verb: an option that is not repeatable is refused where it is given twice.

    ``reads``: the tables that it cannot do without. They are looked for before the verb starts,
    as are its sources, its settings and a Java. ``may_spare_spark``: parameters with which it can
    do without Spark; then Java is looked for only where a session is to start. ``extra``: the
    extra of the wheel without which it can do nothing; None: the core is enough without
    --warehouse. ``example``: what is typed behind its name, as its help shows it.
    ``has_figures``: --output prometheus prints figures, which it gives to ``give_figures``.
    """

    def __init__(
        self,
        *arguments: Any,
        reads: Sequence[str] = (),
        may_spare_spark: Sequence[str] = (),
        extra: str | None = "spark",
        example: str,
        has_figures: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.params += [_quiet_option(), _log_format_option()]
        if any(param.name == "output" for param in self.params):
            self.params.append(_schema_option())
        for param in self.params:
            if has_figures and param.name == "output" and isinstance(param, click.Option):
                _offer_figures(param)
            if param.type is click.STRING and param.metavar in _PLACES:
                param.type = _PLACES[param.metavar]
        self.reads = reads
        self.may_spare_spark = may_spare_spark
        self.extra = extra
        self.example = example

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options by what they are for."""
        write_options(self.get_params(ctx), ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show a command that can be typed."""
        write_example(self.example, ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        """Refuse what is not installed, and wrong paths, settings and Java; run the verb."""
        if is_quiet() and ctx.params.get("verbose"):
            ctx.fail("--quiet and --verbose are opposites: leave only the one that is meant")
        extra, verb = self.extra, ctx.command_path.partition(" ")[2] or str(self.name)
        needs_spark = not any(ctx.params.get(name) for name in self.may_spare_spark)
        if extra is None and (needs_spark := ctx.params.get("warehouse") is not None):
            extra, verb = "spark", f"{verb} --warehouse"
        if extra is not None:
            _require_extra(extra, verb)
        _refuse_outputs(self, ctx)
        check_before_session(ctx.params, reads=self.reads, needs_spark=needs_spark)
        return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse repeats and what is no place, then parse."""
        if not ctx.resilient_parsing:
            log_as_asked(args, verb_words(ctx))
        refuse_repeats(self, ctx, args)
        _refuse_misread_places(self, ctx, args)
        return super().parse_args(ctx, args)


def first_sentence(verb: click.Command) -> str:
    """Return what a verb's help begins with, up to an empty line."""
    return " ".join((verb.help or "").split("\n\n")[0].split())


class Group(click.Group):
    """A group of verbs, all of class ``Command``."""

    command_class = Command
    default: str | None = None
    """The subcommand that need not be named."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands, each with its first sentence as a whole."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, first_sentence(verb)) for name, verb in self.commands.items()]
            )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete subcommands, and the options of the one that need not be named."""
        found = super().shell_complete(ctx, incomplete)
        default = None if self.default is None else self.get_command(ctx, self.default)
        if default is None or not incomplete.startswith("-"):
            return found
        return [*found, *default.shell_complete(ctx, incomplete)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default's name before options that no subcommand precedes, then parse."""
        if ctx.resilient_parsing and not args:  # completion: any subcommand can follow
            return super().parse_args(ctx, args)
        named = bool(args) and args[0] in (*self.commands, *ctx.help_option_names)
        if self.default is not None and not named:
            args = [self.default, *args]
        refuse_repeats(self, ctx, args)
        return super().parse_args(ctx, args)
