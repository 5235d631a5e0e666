"""``--output prometheus``: the figures of an answer, in Prometheus' text format.

A verb gives its figures, and they are printed once its exit status is known. Of each metric there
is a second one that says whether the figure is known: what is not known has no value.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_segments.console.lines import print_as_it_is
from kafka_segments.files.storage.local_folder import as_text
from kafka_segments.files.storage.uris import without_secrets

PROMETHEUS = "prometheus"
_PREFIX = "kafka_segments_"


class Metric(NamedTuple):
    """A gauge: its name without ``kafka_segments_``, with its unit; what it is; its labels.

    Those of a verb get the label ``source`` besides, so that files of several calls agree.
    """

    name: str
    help: str
    labels: tuple[str, ...]


class Figure(NamedTuple):
    """A metric's value for the values of its labels; None: not known."""

    metric: Metric
    labels: tuple[str, ...]
    value: float | None


NODE = ("cluster", "broker_id", "log_dirs")
"""Labels of what is of a node."""
_OF_ANSWER = ("verb", "source")
_EXIT_STATUS = Metric(
    "exit_status",
    "How the verb ended: 0 nothing found, 1 findings or something not known, 2 wrong usage,"
    " 3 failed: then there are no figures.",
    _OF_ANSWER,
)
_ANSWERED = Metric(
    "answer_timestamp_seconds", "The moment that the answer is of, since 1970.", _OF_ANSWER
)
_FINDINGS = Metric(
    "findings", "What a person should look at, what is not known included.", _OF_ANSWER
)
_UNKNOWNS = Metric("unknowns", "How many things the verb says are not known.", _OF_ANSWER)
_TABLES_AGE = Metric(
    "tables_age_seconds",
    "How long before that moment the oldest build of the tables began.",
    _OF_ANSWER,
)


@dataclass
class Answer:
    """What a verb has given of its answer; ``findings`` None: nothing yet.

    ``tables_age_ms``: of each time that tables were asked; None: not known.
    """

    figures: list[Figure] = field(default_factory=list)
    findings: int | None = None
    unknowns: int | None = None
    tables_age_ms: list[int | None] = field(default_factory=list)


_ANSWER: ContextVar[Answer | None] = ContextVar("_ANSWER", default=None)


@contextmanager
def answering() -> Iterator[Answer]:
    """Give the answer that the verb that runs meanwhile adds to."""
    answer = Answer()
    token = _ANSWER.set(answer)
    try:
        yield answer
    finally:
        _ANSWER.reset(token)


def give_figures(figures: Iterable[Figure], *, findings: int, unknowns: int) -> None:
    """Give the figures of the verb that runs; what it tells is not known counts besides.

    Args:
        figures: of what the verb looked at.
        findings: how much a person should look at.
        unknowns: how many of them are not known.
    """
    answer = _ANSWER.get()
    if answer is not None:
        answer.figures.extend(figures)
        answer.findings, answer.unknowns = findings, unknowns


def give_tables_age(age_ms: int | None) -> None:
    """Give the age of the tables that an answer is taken from; None: not known."""
    answer = _ANSWER.get()
    if answer is not None:
        answer.tables_age_ms.append(age_ms)


def counted_as_whole(count: int, *, is_whole: bool) -> int | None:
    """Return a count; None for a 0 where not all was looked at."""
    return count if count or is_whole else None


def broker_label(broker_id: int) -> str:
    """Return a broker's id in a label; empty: it is not known."""
    return str(broker_id) if broker_id >= 0 else ""


def node_labels(cluster: str, node_id: int, log_dirs: Iterable[str]) -> tuple[str, ...]:
    """Return the values of ``NODE`` for a node."""
    return (cluster, broker_label(node_id), ",".join(log_dirs))


def question_of(verb: str, options: Mapping[str, Any]) -> str:
    """Return in a label what was asked: a verb's words, and an option that has metrics of its own.

    Both answers of one source can lie beside each other: no series stands in two files.
    """
    return f"{verb} --share-groups" if options.get("is_share") else verb


def source_of(options: Mapping[str, Any]) -> str:
    """Return in a label what a verb's answer is of: its directories, else the tables."""
    named = options.get("backups") or (*options.get("folders", ()), *options.get("sources", ()))
    return " ".join(as_text(without_secrets(one)) for one in named or (options["warehouse"],))


def print_answer(
    answer: Answer, *, verb: str, source: str, now_ms: int, status: int, not_known: int
) -> None:
    """Print the figures of an answer, and those of every answer.

    Args:
        answer: what the verb gave; nothing, where it failed.
        verb: what ``question_of`` says, such as ``backup verify``.
        source: what it was asked of.
        now_ms: the moment of the answer, in ms since 1970.
        status: how it ended.
        not_known: how many things are not known besides those that it gave.
    """
    findings, unknowns = (
        None if count is None else count + not_known for count in (answer.findings, answer.unknowns)
    )
    values = [
        (_EXIT_STATUS, status),
        (_ANSWERED, now_ms / 1000),
        (_FINDINGS, findings),
        (_UNKNOWNS, unknowns),
    ]
    if answer.tables_age_ms and findings is not None:
        ages = [age for age in answer.tables_age_ms if age is not None]
        is_known = len(ages) == len(answer.tables_age_ms)
        values.append((_TABLES_AGE, max(ages) / 1000 if is_known else None))
    figures = [Figure(metric, (verb, source), value) for metric, value in values]
    for metric, labels, value in answer.figures if findings is not None else ():
        of_source = metric._replace(labels=("source", *metric.labels))
        figures.append(Figure(of_source, (source, *labels), value))
    print_as_it_is(text_format(figures))


def text_format(figures: Iterable[Figure]) -> str:
    """Return figures in the text format, version 0.0.4, each metric with what it is.

    Where hostile names give a metric the same labels twice, for which node_exporter would drop all
    that it has, their figure is not known.
    """
    from prometheus_client import Metric as Family  # noqa: PLC0415
    from prometheus_client import generate_latest  # noqa: PLC0415
    from prometheus_client.registry import Collector  # noqa: PLC0415

    values: dict[Metric, dict[tuple[str, ...], float | None]] = {}
    for metric, names, value in figures:
        of_metric = values.setdefault(metric, {})
        labels = tuple(map(_utf8, names))
        of_metric[labels] = None if labels in of_metric else value

    def families() -> Iterator[Family]:
        for metric, of_metric in values.items():
            name = f"{_PREFIX}{metric.name}"
            whether = f"1: {name} is not known for these labels, and has no value; 0: it has."
            known, unknown = (
                Family(name, metric.help, "gauge"),
                Family(f"{name}_not_known", whether, "gauge"),
            )
            for labels, value in of_metric.items():
                named = dict(zip(metric.labels, labels, strict=True))
                unknown.add_sample(unknown.name, named, value is None)
                if value is not None:
                    known.add_sample(known.name, named, value)
            yield from (known, unknown)

    class _Families(Collector):
        def collect(self) -> Iterator[Family]:
            return families()

    return generate_latest(_Families()).decode("utf-8")


def _utf8(name: str) -> str:
    """Return a label's value: UTF-8, whatever is in a name."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
