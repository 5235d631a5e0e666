"""What ``cleaner`` gives Prometheus: figures of each node."""

from collections.abc import Iterator

from kafka_segments.console.prometheus import NODE, Figure, Metric, counted_as_whole, node_labels
from kafka_segments.verbs.find.cleaner.decide import Stand
from kafka_segments.verbs.find.cleaner.run import NodeStands

_RUNS = Metric("cleaner_runs", "Whether the log cleaner runs, for all that files tell.", NODE)
_LOGS = Metric("cleaner_logs", "Compacted logs, by where they stand.", (*NODE, "stand"))
_UNSURE = Metric("cleaner_unsure_logs", "Logs that may be compacted or not.", NODE)
_SIZES = {
    f"{part}_bytes": Metric(f"cleaner_{part}_bytes", what, NODE)
    for part, what in (
        ("clean", "Bytes that were cleaned before."),
        ("cleanable", "Bytes that can be cleaned now."),
        ("dirty", "Bytes that are dirty, those that are held included."),
    )
}
_RATIO = Metric("cleaner_dirty_ratio_max", "The greatest dirty ratio of a log, 0 to 1.", NODE)
_OVERDUE = Metric(
    "cleaner_overdue_max_seconds",
    "By how long max.compaction.lag.ms has passed, of the log where that is most.",
    NODE,
)


def figures_of(node: NodeStands) -> Iterator[Figure]:
    """Yield the figures of a node; where one log's is not known, its sums are not."""
    labels = node_labels(node.cluster, node.node_id, node.log_dirs)
    is_whole = not node.not_known
    runs = None if node.stopped is None and not is_whole else node.stopped is None
    yield Figure(_RUNS, labels, runs)
    yield Figure(_UNSURE, labels, len(node.unsure))
    stands = list(node.stands.values())
    for stand in Stand:
        found = sum(one.stand == stand for one in stands)
        count = counted_as_whole(found, is_whole=is_whole)
        yield Figure(_LOGS, (*labels, stand.value), count)
    found_logs = [one.found for one in stands if one.found is not None]
    is_known = is_whole and len(found_logs) == len(stands)
    for name, metric in _SIZES.items():
        size = sum(getattr(found, name) for found in found_logs)
        yield Figure(metric, labels, size if is_known else None)
    if stands:
        ratio = max((found.ratio for found in found_logs), default=None)
        yield Figure(_RATIO, labels, ratio if is_known else None)
        overdue_ms = max((found.overdue_ms for found in found_logs), default=0)
        yield Figure(_OVERDUE, labels, overdue_ms / 1000 if is_known else None)


def count_unknown(node: NodeStands) -> int:
    """Return how many things are not known of a node."""
    return len(node.not_known) + sum(
        one.stand == Stand.NOT_KNOWN or bool(one.foretold and one.foretold.unknown)
        for one in node.stands.values()
    )
