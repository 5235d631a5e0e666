"""What ``recovery forecast`` says of the starts of nodes."""

from collections.abc import Iterable, Sequence
from typing import Any

from kafka_segments.console.grouping import alike, counted
from kafka_segments.console.lines import say
from kafka_segments.console.output import MOST_ROWS_SHOWN, console, print_text, size_text
from kafka_segments.kafka.broker_rules.start.effects import Effect
from kafka_segments.kafka.broker_rules.start.node import sum_or_none
from kafka_segments.kafka.broker_rules.start.rules import RULES, StartFinding
from kafka_segments.kafka.text.names import parse_partition_folder, parse_segment_name
from kafka_segments.verbs.change.recovery.forecast.decide.forecasts import DirFacts, told
from kafka_segments.verbs.change.recovery.forecast.run import Forecast
from kafka_segments.verbs.change.recovery.forecast.run_start import NodeOfDirs

_OF_RECOVERY = ("recovery-cut", "refused-segment")


def print_starts(nodes: Sequence[NodeOfDirs]) -> None:
    """Print whether each node starts, what it loses, and the step that prevents it.

    Findings of one state, with the same step, are one, with what they cost together.
    """
    verdict = {True: "starts", False: "does not start", None: "not known whether it starts"}
    found = [node for node in nodes if node.start.findings or node.start.starts is None]
    for node in found:
        start = node.start
        without = "".join(f"; goes on without {uri}" for uri in start.without)
        print_text(f"{', '.join(node.uris)}: {verdict[start.starts]}{without}")
        groups = alike(start.findings, _state)
        for findings in groups[:MOST_ROWS_SHOWN]:
            print_text(f"  before the start: {findings[0].step}")
            print_text(f"    {_told(findings)}{_cost(findings)}")
        more = len(groups) - MOST_ROWS_SHOWN
        if more > 0:
            print_text(f"  and {more} more: --output json --rows findings")
    if found:
        console().print()


def print_starts_as_lines(nodes: Sequence[NodeOfDirs]) -> None:
    """Write what was found of the starts on stderr, where stdout has rows."""
    groups = alike((finding for node in nodes for finding in node.start.findings), _state)
    for findings in groups[:MOST_ROWS_SHOWN]:
        say(f"{_told(findings)}; before the start: {findings[0].step}")


def _state(finding: StartFinding) -> tuple[str, Effect, str]:
    return finding.rule, finding.effect, finding.exception


def _told(findings: Sequence[StartFinding]) -> str:
    """Return a finding in words; of several alike, how many there are and the first."""
    return counted(len(findings), told(findings[0]))


def _cost(findings: Sequence[StartFinding]) -> str:
    """Return in words what findings cost together."""
    if findings[0].effect in (Effect.ENDS, Effect.NOT_KNOWN):
        return ""
    size = sum_or_none(finding.size_bytes for finding in findings)
    told_size = "not known" if size is None else size_text(size)
    records = _in_words(sum_or_none(finding.records for finding in findings))
    offsets = _in_words(sum_or_none(finding.offsets for finding in findings))
    together = "" if len(findings) == 1 else "together "
    return f"; {together}{told_size}, offsets {offsets}, records {records}"


def _in_words(count: int | None) -> str:
    return "not known" if count is None else str(count)


def start_rows(forecast: Forecast) -> Iterable[dict[str, Any]]:
    """Return the findings of starts as rows, those of recovery itself left out."""
    keys = {one.log_dir: keys_of(one) for one in forecast.dirs}
    for node in forecast.nodes:
        for finding in node.start.findings:
            if finding.rule in _OF_RECOVERY:
                continue
            nobody = {"cluster": "", "broker_id": -1, "log_dir": finding.log_dir}
            topic, partition = _partition_of(finding.folder)
            yield {
                **keys.get(finding.log_dir, nobody),
                "topic": topic,
                "partition": partition,
                "folder": finding.folder,
                "base_offset": None,
                "consequence": finding.effect.value,
                "position": None,
                "lost_bytes": finding.size_bytes,
                "lost_records": finding.records,
                "lost_segments": None,
                "message": finding.found,
                "next_offset": None,
                "file": finding.file,
                "line": finding.line,
                "exception": finding.exception,
                "lost_offsets": finding.offsets,
                "files": list(finding.files),
                "rule": finding.rule,
                "source": RULES[finding.rule].source,
                "step": finding.step,
            }


def lost_by_cuts(forecast: Forecast) -> dict[tuple[str, str, int], dict[str, int | None]]:
    """Return how many offsets and records go with each segment that recovery cuts.

    By log directory, folder and base offset. The start's finding holds them against the high
    watermark, which knows of more where headers in the bytes that go end early.
    """
    return {
        (finding.log_dir, finding.folder, base): {
            "lost_offsets": finding.offsets,
            "lost_records": finding.records,
        }
        for node in forecast.nodes
        for finding in node.start.findings
        if finding.rule == "recovery-cut" and (base := parse_segment_name(finding.file)) is not None
    }


def _partition_of(folder: str) -> tuple[str | None, int | None]:
    named = parse_partition_folder(folder)
    return (None, None) if named is None else (named.topic, named.partition)


def keys_of(one: DirFacts) -> dict[str, Any]:
    """Return the columns that say which log directory a row is of."""
    return {"cluster": one.cluster, "broker_id": one.broker_id, "log_dir": one.log_dir}
