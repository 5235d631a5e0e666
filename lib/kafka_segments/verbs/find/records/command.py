"""``records``: which records a consumer cannot read, and where a record is."""

import binascii
from typing import Any

import click

from kafka_segments.console.local_folders import directory_options, log_name
from kafka_segments.console.options import ExitStatus, follow_links_option, run_with
from kafka_segments.console.progress import progress
from kafka_segments.console.strict_options import POSITIVE_INT, Command
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri


@click.command(cls=Command, extra=None, example="/data/kafka-logs --topic orders --key customer-7")
@directory_options(
    click.option("--topic", "topics", multiple=True, help="Of this topic alone; repeatable."),
    click.option(
        "--log",
        "logs",
        multiple=True,
        metavar="TOPIC-PARTITION",
        help="Of this log alone; repeatable.",
    ),
    click.option("--key", help="Records with this key, as text."),
    click.option("--key-hex", metavar="HEX", help="Records with this key, as hex."),
    click.option("--header", metavar="NAME[=TEXT]", help="Records with this header, or its value."),
    click.option("--offsets", metavar="FROM[..TO]", help="Records at an offset, or between two."),
    click.option(
        "--time", metavar="FROM..TO", help="Records between two times, as `search` takes them."
    ),
    click.option(
        "--values",
        "form",
        type=click.Choice(["text", "hex", "json"]),
        default="text",
        show_default=True,
        help="How keys and values are written.",
    ),
    click.option(
        "--most", type=POSITIVE_INT, default=1000, show_default=True, help="Most records to print."
    ),
    click.option(
        "--largest",
        "most_large",
        type=POSITIVE_INT,
        default=10,
        show_default=True,
        help="Of how many topics and producers the largest batch is told.",
    ),
    follow_links_option,
)
def records(**options: Any) -> None:
    """List the batches that a consumer cannot read, or find records by key, header, offset or time.

    Without --key, --header, --offsets or --time: each batch that a consumer cannot read, with what
    it says and the offset to seek to, then the largest batches. The last line on stderr says what
    was read, so that an empty answer proves that there is none. Without a broker, tables or a JVM;
    nothing is written. Exit status 1: something could not be read.
    """
    run_with(_records, options)


def _records(
    *,
    folders: tuple[str, ...],
    sources: tuple[str, ...],
    topics: tuple[str, ...],
    logs: tuple[str, ...],
    form: str,
    most: int,
    most_large: int,
    follow_links: bool,
    output: str,
    **asked: Any,
) -> int:
    from kafka_segments.verbs.find.records.report import RecordsForm, print_records  # noqa: PLC0415
    from kafka_segments.verbs.find.records.run import RecordsOptions, run_records  # noqa: PLC0415

    named = (*folders, *sources)
    if not named:
        raise UsageError("records needs a folder: `kafka-segments records /data/kafka-logs`")
    query = _query(**asked)
    options = RecordsOptions(
        tuple(map(absolute_uri, named)),
        query,
        topics,
        tuple(log_name("--log", log) for log in logs),
        most,
        most_large,
        follow_links,
    )
    with progress(None) as work:
        read = run_records(options, work=work)
        unread = print_records(read, output, form=RecordsForm(form, most, not query.is_any))
    return ExitStatus.FINDINGS if unread else ExitStatus.DONE


def _query(
    *,
    key: str | None,
    key_hex: str | None,
    header: str | None,
    offsets: str | None,
    time: str | None,
    now_ms: int,
) -> Any:
    from kafka_segments.verbs.find.records.decide import Query  # noqa: PLC0415

    if key is not None and key_hex is not None:
        raise UsageError("--key and --key-hex are the same: leave only the one that is meant")
    wanted = None if key is None else key.encode("utf-8", "surrogateescape")
    if key_hex is not None:
        try:
            wanted = binascii.unhexlify(key_hex)
        except ValueError as error:
            raise UsageError(f"--key-hex {key_hex}: {error}") from None
    name, separator, value = (None, "", "") if header is None else header.partition("=")
    bounds: dict[str, int] = {}
    if offsets is not None:
        bounds["low_offset"], bounds["high_offset"] = _offsets(offsets)
    if time is not None:
        bounds["low_timestamp"], bounds["high_timestamp"] = _times(time, now_ms)
    return Query(wanted, name, value.encode() if separator else None, **bounds)


def _offsets(text: str) -> tuple[int, int]:
    first, separator, last = text.partition("..")
    try:
        low = int(first)
        return low, int(last) if separator else low
    except ValueError:
        raise UsageError(f"--offsets {text}: an offset, or FROM..TO expected") from None


def _times(text: str, now_ms: int) -> tuple[int, int]:

    first, separator, last = text.partition("..")
    if not separator:
        raise UsageError(f"--time {text}: FROM..TO expected")
    from kafka_segments.console.moments import given_point  # noqa: PLC0415

    low, high = (given_point("--time", one, now_ms=now_ms) for one in (first, last))
    return low, high
