"""What ``triage`` prints: a page for each node."""

from collections.abc import Iterator, Sequence
from typing import Any

from kafka_segments.console.grouping import alike, counted
from kafka_segments.console.lines import print_dicts
from kafka_segments.console.output import console, print_text, size_text
from kafka_segments.console.prometheus import PROMETHEUS, give_figures
from kafka_segments.kafka.text.plain_text import first_of, node_in_words
from kafka_segments.verbs.find.triage.decide import Line, Section
from kafka_segments.verbs.find.triage.report_figures import count_unknown, figures_of
from kafka_segments.verbs.find.triage.run import TriagedNode

_MOST_LINES = 8
_MOST_PLACES = 3
_VERDICT = {True: "starts", False: "does not start", None: "not known whether it starts"}


def print_triage(nodes: Sequence[TriagedNode], output: str) -> int:
    """Print a page for each node; return how many of its lines are for a person."""
    if output == "table":
        for node in nodes:
            _print_page(node)
    elif output == PROMETHEUS:
        figures = (figure for node in nodes for figure in figures_of(node))
        give_figures(figures, findings=count_findings(nodes), unknowns=count_unknown(nodes))
    else:
        print_dicts((row for node in nodes for row in rows_of(node)), output)
    return count_findings(nodes)


def count_findings(nodes: Sequence[TriagedNode]) -> int:
    """Return how many lines are for a person, verdicts that are not known included."""
    lines = [line for node in nodes for line in node.lines]
    unknown = sum(node.starts is None for node in nodes)
    return unknown + sum(line.section != Section.ODD or bool(line.step) for line in lines)


def rows_of(node: TriagedNode) -> Iterator[dict[str, Any]]:
    """Yield the rows of a node: the verdict, what was found, then the steps."""
    keys = {"cluster": node.cluster, "broker_id": node.node_id}
    verdict = {
        "log_dir": "",
        "place": "",
        "what": _verdict(node),
        "bytes": node.segment_bytes,
        "records": None,
        "offsets": None,
        "step": "",
    }
    yield {**keys, "row": "verdict", **verdict}
    for line in node.lines:
        yield {
            **keys,
            "row": line.section.value,
            "log_dir": line.log_dir,
            "place": line.place,
            "what": line.what,
            "bytes": line.used_bytes,
            "records": line.records,
            "offsets": line.offsets,
            "step": line.step,
        }
    for number, step in enumerate(node.steps, start=1):
        place = ", ".join(step.places)
        counts = {"bytes": None, "records": None, "offsets": None}
        told = {"log_dir": "", "place": place, "what": f"step {number}", **counts}
        yield {**keys, "row": "step", **told, "step": step.text}


def _verdict(node: TriagedNode) -> str:
    without = f", without {', '.join(node.without)}" if node.without else ""
    return f"{_VERDICT[node.starts]}{without}"


def _print_page(node: TriagedNode) -> None:
    print_text(f"{node_in_words(node.cluster, node.node_id, node.log_dirs)}: {_verdict(node)}")
    stop = "a clean stop" if node.is_clean else "a hard stop"
    state = {
        True: "it is running",
        None: "whether it is running is not known",
        False: f"down, after {stop}",
    }
    print_text(
        f"  {state[node.is_running]}; looked at {node.logs} logs, {node.segments} segments,"
        f" {size_text(node.segment_bytes)}"
    )
    for section in Section:
        _print_section(section, [line for line in node.lines if line.section == section])
    print_text("what to do")
    for number, step in enumerate(node.steps, start=1):
        print_text(f"  {number}. {step.text}")
        if step.places:
            print_text(f"     {first_of(step.places, _MOST_PLACES)}")
    console().print()


def _print_section(section: Section, lines: Sequence[Line]) -> None:
    if not lines:
        return
    print_text(section.value)
    groups = alike(lines, lambda line: line.rule or (line.log_dir, line.place, line.what))
    for group in groups[:_MOST_LINES]:
        first = group[0]
        place = "/".join(filter(None, (first.log_dir, first.place)))
        told = f"{place}: {first.what}" if place else first.what
        print_text(f"  {counted(len(group), told)}{_cost(group)}")
    if len(groups) > _MOST_LINES:
        print_text(f"  and {len(groups) - _MOST_LINES} more: --output json")


def _cost(lines: Sequence[Line]) -> str:
    """Say what findings that are alike are about, together."""
    parts = []
    sizes = [line.used_bytes for line in lines]
    if None not in sizes and any(sizes):
        parts.append(size_text(sum(size or 0 for size in sizes)))
    if lines[0].section == Section.LOSES:
        for name, counts in (
            ("offsets", [line.offsets for line in lines]),
            ("records", [line.records for line in lines]),
        ):
            known = None not in counts
            parts.append(f"{name} {sum(count or 0 for count in counts) if known else 'not known'}")
    return f"; {', '.join(parts)}" if parts else ""
