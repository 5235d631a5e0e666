"""What the verbs share: options, the clock, errors as one line and an exit status."""

import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from enum import IntEnum
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

import click

from kafka_segments.console.json_log import ERROR, log_handler
from kafka_segments.console.lines import say, take_any_letter
from kafka_segments.console.not_known import noting
from kafka_segments.console.prometheus import (
    PROMETHEUS,
    Answer,
    answering,
    print_answer,
    question_of,
    source_of,
)
from kafka_segments.console.strict_options import (
    INT,
    MOMENT_MS,
    complete_folder,
    is_quiet,
    verb_words,
)
from kafka_segments.engine.sources.missing import MOST_VANISHED
from kafka_segments.errors import (
    KafkaSegmentsError,
    TerminatedError,
    UsageError,
    is_answerless,
)
from kafka_segments.kafka.broker_rules.versions import DEFAULT, NEWEST
from kafka_segments.kafka.text.plain_text import plain, plain_lines

if TYPE_CHECKING:
    from kafka_segments.settings import Settings


class ExitStatus(IntEnum):
    """How a verb ended."""

    DONE = 0
    FINDINGS = 1
    USAGE = 2
    FAILED = 3
    INTERRUPTED = 130  # 128 + SIGINT, as shells have it
    TERMINATED = 143  # 128 + SIGTERM


ROOT = Path(__file__).resolve().parents[3]
_CAUSE = "Caused by: "
_CANCELLED = "cancelled as part of cancellation of all jobs"  # as PySpark does at Ctrl-C
_OBJECT = re.compile(r"\bs3a?://[^\s'\"]*[^\s'\".,:;)]")
_BROKEN_OFF = re.compile(
    r"Premature end of Content-Length|ConnectionClosedException|NoHttpResponse|Read timed out"
    r"|Connection reset|Unable to execute HTTP request"
)
_NO_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem not found"
_LOG = logging.getLogger(__name__)
_OF_QUERIES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""By these PySpark prints each error of a query with its stack trace, as JSON."""


def _sources(*, required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--source",
        "sources",
        multiple=True,
        required=required,
        metavar="URI",
        shell_complete=complete_folder,
        help="A log directory, a folder of several, or one partition's folder; repeatable.",
    )


source_option = _sources(required=True)
optional_source_option = _sources(required=False)

follow_links_option = click.option(
    "--follow-links",
    is_flag=True,
    help="Follow symbolic links below the sources, to what lies in one of them; default: each is a"
    " row that says where it leads.",
)

most_vanished_option = click.option(
    "--most-vanished",
    type=click.IntRange(min=0, max=100),
    default=MOST_VANISHED,
    show_default=True,
    metavar="PERCENT",
    help="Stop, and change nothing, where more of what is known below a source is gone with its"
    " whole logs, as where a disk is not mounted.",
)
verbose_option = click.option("--verbose", is_flag=True, help="More messages on stderr.")


def clock() -> int:
    """Read the clock, in ms since 1970; a command does so once."""
    return time.time_ns() // 1_000_000


now_ms_option = click.option(
    "--now-ms",
    type=MOMENT_MS,
    default=clock,
    metavar="MS",
    help="The moment to take as now, in ms since 1970; default: the clock.",
)


def output_option(*forms: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option for the form of the result; ``forms`` are allowed besides the usual."""
    return click.option(
        "--output",
        type=click.Choice(["table", "json", "csv", *forms]),
        default="table",
        show_default=True,
        help="Form of the result on stdout; json is one object a line.",
    )


def kafka_version_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option for a release, which ``parse_version`` reads; ``help_text``: what for."""
    return click.option(
        "--kafka-version",
        default=DEFAULT,
        show_default=True,
        metavar="RELEASE",
        help=f"{help_text}; {NEWEST} is the newest that is known.",
    )


def index_size_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the settings that the bytes of index files depend on."""
    command = click.option(
        "--segment-index-bytes", type=INT, metavar="BYTES", help="Kafka's; default 10485760."
    )(command)
    return click.option(
        "--index-interval-bytes", type=INT, metavar="BYTES", help="Kafka's; default 4096."
    )(command)


def load_settings(conf: Path | None, pairs: Sequence[str], **flags: int | None) -> "Settings":
    """Read the settings; options of a setting's own that were given win over ``pairs``.

    Raises:
        UsageError: as ``Settings.load``.
    """
    from kafka_segments.settings import Settings  # noqa: PLC0415

    return Settings.load(conf, pairs, **flags)


def with_options(
    *options: Callable[..., Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what adds options to a command; its help shows them in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


BUILT_TABLES = "Root of the Delta tables that `build` made."
"""The help of ``--warehouse`` where a verb makes none."""


def shared_options(
    command: Callable[..., Any],
    *,
    needs_warehouse: bool = True,
    warehouse: str = "Root of the Delta tables; made where it is not there.",
) -> Callable[..., Any]:
    """Add the options that every verb shares; ``warehouse``: what it does with the tables."""
    options: list[Callable[..., Any]] = [
        click.option(
            "--warehouse",
            required=needs_warehouse,
            metavar="URI",
            shell_complete=complete_folder,
            help=warehouse,
        ),
        click.option(
            "--conf",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="FILE",
            help="TOML file of settings: Kafka's own keys with _ for '.'.",
        ),
        click.option(
            "--set",
            "pairs",
            multiple=True,
            metavar="KEY=VALUE",
            help="One setting, over --conf and the environment; repeatable.",
        ),
        now_ms_option,
        output_option(),
        click.option("--dry-run", is_flag=True, help="Say what would be done, change nothing."),
        verbose_option,
    ]
    return with_options(*options)(command)


def run_with(command: Callable[..., int], options: Mapping[str, Any]) -> None:
    """Run a command with its options, but for ``--verbose``, which ``run`` takes."""
    given = {name: value for name, value in options.items() if name != "verbose"}

    def end(answer: Answer, status: int, not_known: int) -> None:
        print_answer(
            answer,
            verb=question_of(verb_words(click.get_current_context()), options),
            source=source_of(options),
            now_ms=options["now_ms"],
            status=status,
            not_known=not_known,
        )

    run(
        lambda: command(**given),
        verbose=options["verbose"],
        end=end if options.get("output") == PROMETHEUS else None,
    )


def run(
    command: Callable[[], int],
    *,
    verbose: bool,
    end: Callable[[Answer, int, int], None] | None = None,
) -> None:
    """Run a command and leave with its exit status; errors become one line on stderr.

    With ``--quiet`` nothing else is said there. ``end`` prints the figures of an answer, given the
    status and how many things are not known besides; of a command that fails it is given none.
    """
    take_any_letter()
    quiet = is_quiet()
    logging.basicConfig(
        level=logging.INFO if verbose else logging.ERROR if quiet else logging.WARNING,
        handlers=[log_handler(_PlainFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))],
    )
    # Errors are raised as well; py4j writes its own, with their traces, where the JVM is gone and
    # at Ctrl-C, some by the root logger.
    logging.getLogger("py4j").setLevel(logging.ERROR if verbose else logging.CRITICAL)
    for name in () if verbose else _OF_QUERIES:
        logging.getLogger(name).disabled = True
    for handler in () if verbose else logging.getLogger().handlers:
        handler.addFilter(_is_not_of_py4j)
    unraisable = sys.unraisablehook
    has_ended = False
    try:
        with _silence(quiet), noting() as not_known, answering() as answer:
            status = command()
            if not_known and status == ExitStatus.DONE:
                status = ExitStatus.FINDINGS
            has_ended = True
            if end is not None:
                end(answer, status, len(set(not_known)))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  the last line of defence
        status = _told(error, verbose=verbose)
        if end is not None and not has_ended and status <= ExitStatus.FAILED:
            with suppress(OSError):  # stdout is gone: stderr has said what failed
                end(Answer(), status, 0)
    sys.unraisablehook = unraisable  # what the error held has ended by now
    sys.exit(status)


class _PlainFormatter(logging.Formatter):
    """Writes messages in a line each, whatever names are in them; traces keep their lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the library's name
        return plain(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802  the library's name
        return plain_lines(super().formatException(ei))


def interrupted_status(error: KeyboardInterrupt) -> ExitStatus:
    """Return the status after Ctrl-C or SIGTERM."""
    is_term = isinstance(error, TerminatedError)
    return ExitStatus.TERMINATED if is_term else ExitStatus.INTERRUPTED


def _told(error: BaseException, *, verbose: bool) -> int:
    """Say what a verb ended by; return the status.

    Where it was interrupted, that is why it ended, whatever failed on its way out.
    """
    interrupt = _interrupt_behind(error)
    if interrupt is not None:
        return _interrupted(interrupt, verbose=verbose)
    if isinstance(error, KafkaSegmentsError):
        is_usage = isinstance(error, UsageError) and not is_answerless(error)
        return _failed(str(error), ExitStatus.USAGE if is_usage else ExitStatus.FAILED)
    if verbose:
        _LOG.exception("failed")
    if _is_of_stdout(error):
        return _failed(f"stdout takes no more, what it has is not all: {error}", ExitStatus.FAILED)
    return _failed(describe_failure(error), ExitStatus.FAILED)


def _is_of_stdout(error: BaseException) -> bool:
    """Tell whether an error came while something was printed; it names no file then."""
    if not isinstance(error, OSError) or error.filename is not None:
        return False
    *_, (frame, _) = walk_tb(error.__traceback__)
    room = frame.f_globals["__name__"].removeprefix("kafka_segments.").partition(".")[0]
    return room in {"console", "rich"}


def _interrupt_behind(error: BaseException) -> KeyboardInterrupt | None:
    """Return the interrupt that an error is, or that it came after; None: there was none."""
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, KeyboardInterrupt):
            return behind
        behind = behind.__context__
    # Lost where Python drops an object, after PySpark has cancelled what ran.
    return KeyboardInterrupt() if _CANCELLED in str(error) else None


def _interrupted(error: KeyboardInterrupt, *, verbose: bool) -> int:
    """Say that the verb was interrupted, and by what; return the status.

    Objects of PySpark that were half made can end badly, which is not shown.
    """
    if not verbose:
        sys.unraisablehook = lambda _: None
    status = interrupted_status(error)
    how = "ended by SIGTERM" if status == ExitStatus.TERMINATED else "interrupted"
    return _failed(f"{how}; what was done is kept, run it again", status)


def _failed(why: str, status: ExitStatus) -> ExitStatus:
    say(f"kafka-segments: {why}", level=ERROR, exit_status=int(status))
    return status


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


@contextmanager
def _silence(quiet: bool) -> Iterator[None]:
    """Let progress and summaries go nowhere, where that is asked for."""
    if not quiet:
        yield
        return
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
        yield


def describe_failure(error: BaseException) -> str:
    """Find the line of an error that says what went wrong, in Spark's long texts too."""
    if _NO_S3A in str(error):
        return (
            "Spark has no JARs for tables on S3: run `make jars-s3` in a checkout, else `python -m"
            " kafka_segments.jars --s3`, or give them to spark-submit by --jars; docs/storage.md"
            " has more"
        )
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if _names_a_python_error(line)] or [
        line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)
    ]
    stored = _OBJECT.search(str(error)) if _BROKEN_OFF.search(str(error)) else None
    if stored is not None:
        return (
            f"{stored[0]}: the store's answers broke off or did not come"
            f" ({causes[-1] if causes else lines[0]}): run it again; if that fails, too, read this"
            " object with another tool, which tells whether it is the store or the network"
            " (--verbose shows all)"
        )
    if causes:
        return f"{_in_full(causes[-1], lines)} (--verbose shows all)"
    return f"{type(error).__name__}: {lines[0] if lines else ''} (--verbose shows all)"


def _in_full(cause: str, lines: Sequence[str]) -> str:
    """Return a cause as the first error of its class says it that ends with it.

    Java's cause of a program that cannot be run, say, does not name the program.
    """
    kind, _, message = cause.partition(": ")
    said = (line.removeprefix(_CAUSE).removeprefix(": ") for line in lines if message)
    return next(
        (line for line in said if line.startswith(f"{kind}: ") and line.endswith(message)), cause
    )


def _names_a_python_error(line: str) -> bool:
    name = line.partition(":")[0]
    return name.rpartition(".")[2].endswith("Error") and " " not in name
