"""What ``triage`` gives Prometheus: figures of each node."""

from collections.abc import Iterator, Sequence

from kafka_segments.console.prometheus import NODE, Figure, Metric, counted_as_whole, node_labels
from kafka_segments.verbs.find.triage.decide import Section
from kafka_segments.verbs.find.triage.run import TriagedNode

_STARTS = Metric("triage_starts", "Whether the broker would start: 1 it would, 0 not.", NODE)
_RUNNING = Metric(
    "triage_running", "Whether a broker of this machine runs on the directories.", NODE
)
_FINDINGS = Metric(
    "triage_findings",
    "Findings: stops and loses of a start, unknown, slow start, odd.",
    (*NODE, "section"),
)
_LOST = {
    name: Metric(f"triage_start_loses_{name}", f"{what} that a start takes away.", NODE)
    for name, what in (("bytes", "Bytes"), ("records", "Records"), ("offsets", "Offsets"))
}
_LOGS = Metric("triage_logs", "Logs that were looked at.", NODE)
_SEGMENTS = Metric("triage_segments", "Segments that these have.", NODE)
_BYTES = Metric("triage_segment_bytes", "Bytes of these.", NODE)
_UNREAD = Metric(
    "triage_unread_bytes", "Of these, what a start reads and was not read but for its ends.", NODE
)


def figures_of(node: TriagedNode) -> Iterator[Figure]:
    """Yield the figures of a node.

    What a start would take away is known only of one that nothing stops, and counts of nothing only
    where all was looked at.
    """
    labels = node_labels(node.cluster, node.node_id, node.log_dirs)
    is_whole = not count_unknown([node])
    yield Figure(_STARTS, labels, node.starts)
    yield Figure(_RUNNING, labels, node.is_running)
    for section in Section:
        found = sum(line.section == section for line in node.lines)
        is_all = section == Section.UNKNOWN or (
            is_whole and (section != Section.LOSES or node.starts is True)
        )
        count = counted_as_whole(found, is_whole=is_all)
        yield Figure(_FINDINGS, (*labels, section.name.lower()), count)
    lost = [line for line in node.lines if line.section == Section.LOSES]
    for name, counts in (
        ("bytes", [line.used_bytes for line in lost]),
        ("records", [line.records for line in lost]),
        ("offsets", [line.offsets for line in lost]),
    ):
        known = [count for count in counts if count is not None]
        is_known = is_whole and node.starts is True and len(known) == len(counts)
        yield Figure(_LOST[name], labels, sum(known) if is_known else None)
    is_read = not any(line.section == Section.UNKNOWN and not line.rule for line in node.lines)
    for metric, value in (
        (_LOGS, node.logs),
        (_SEGMENTS, node.segments),
        (_BYTES, node.segment_bytes),
        (_UNREAD, node.unread_bytes),
    ):
        yield Figure(metric, labels, value if is_read else None)


def count_unknown(nodes: Sequence[TriagedNode]) -> int:
    """Return how many things are not known of nodes: lines, and whether one starts."""
    return sum(
        (node.starts is None) + sum(line.section == Section.UNKNOWN for line in node.lines)
        for node in nodes
    )
